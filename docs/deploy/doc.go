// Package deploy is the manifests of docs/deploy.md, and the tests that keep them true.
//
// The tests read every manifest as the type of the Kubernetes API that it claims to be, and refuse a field that the type does
// not have; they check that names, labels and references meet; and they put the nodes' configuration before real servers:
// a client's Ping, the restart guard and the probes have to be content with it.
//
// What they do not show: that a cluster schedules it. Values that are of the right type and wrong, such as a storage class that
// nobody has, only a cluster finds out.
//
// It is a module of its own, so that nobody who takes locks downloads the types of Kubernetes.
package deploy
