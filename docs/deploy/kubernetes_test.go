package deploy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquorum/redquorum/quorum"
)

const name = "redquorum"

// matches tells whether a selector finds the pods with these labels.
func matches(selector *meta.LabelSelector, labels map[string]string) bool {
	if selector == nil || len(selector.MatchLabels) == 0 || len(selector.MatchExpressions) > 0 {
		return false
	}
	for key, value := range selector.MatchLabels {
		if labels[key] != value {
			return false
		}
	}
	return true
}

func TestNodesFailOneByOne(t *testing.T) {
	all := load(t)
	nodes := of[apps.StatefulSet](t, all, "StatefulSet", name)
	labels := nodes.Spec.Template.Labels
	if !matches(nodes.Spec.Selector, labels) {
		t.Error("the StatefulSet does not find its pods")
	}
	if n := *nodes.Spec.Replicas; n%2 == 0 || n < 3 {
		t.Errorf("%d nodes: want an odd number, and no single point of failure", n)
	}
	if got := nodes.Spec.UpdateStrategy; got.Type != apps.RollingUpdateStatefulSetStrategyType || got.RollingUpdate != nil {
		t.Errorf("updates are %+v, want one node at a time", got)
	}
	if wait := time.Duration(nodes.Spec.MinReadySeconds) * time.Second; wait < quorum.DefaultTTL {
		t.Errorf("%v between two nodes, want the longest TTL at least, %v by default", wait, quorum.DefaultTTL)
	}
	budget := of[policy.PodDisruptionBudget](t, all, "PodDisruptionBudget", name)
	if most := budget.Spec.MaxUnavailable; !matches(budget.Spec.Selector, labels) || most == nil || most.IntValue() != 1 {
		t.Errorf("the budget lets %v go at once, want 1 of the nodes", most)
	}
	pod := nodes.Spec.Template.Spec
	apart := pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(apart) != 1 || apart[0].TopologyKey != core.LabelHostname || !matches(apart[0].LabelSelector, labels) {
		t.Errorf("nothing keeps two nodes off one machine: %+v", apart)
	}
	spread := pod.TopologySpreadConstraints
	if len(spread) != 1 || spread[0].TopologyKey != core.LabelTopologyZone || !matches(spread[0].LabelSelector, labels) {
		t.Errorf("nothing spreads the nodes over zones: %+v", spread)
	}
	if len(nodes.Spec.VolumeClaimTemplates) != 1 {
		t.Error("want a disk for each node")
	}
}

// What a container mounts, and where, is what the configuration reads and writes.
func TestNodesFindTheirFiles(t *testing.T) {
	all := load(t)
	nodes := of[apps.StatefulSet](t, all, "StatefulSet", name)
	pod := nodes.Spec.Template.Spec
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
		if v.ConfigMap != nil && v.ConfigMap.Name != name || v.Secret != nil && v.Secret.SecretName != name {
			t.Errorf("volume %s is of something else: %+v", v.Name, v)
		}
	}
	for _, v := range nodes.Spec.VolumeClaimTemplates {
		volumes[v.Name] = true
	}
	redis := pod.Containers[0]
	mounted := map[string]string{}
	for _, m := range redis.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("%s is mounted, and there is no such volume", m.Name)
		}
		mounted[m.MountPath] = m.Name
	}
	if got, want := slices.Sorted(maps.Keys(mounted)), []string{"/data", "/etc/redquorum/redis.conf", secretFolder}; !slices.Equal(got, want) {
		t.Errorf("mounted are %q, want %q", got, want)
	}
	if want := []string{"redis-server", "/etc/redquorum/redis.conf"}; !slices.Equal(redis.Command, want) {
		t.Errorf("the command is %q, want %q: an argument would win over the file", redis.Command, want)
	}
	if limit := redis.Resources.Limits.Memory().Value(); limit < 2*96<<20 {
		t.Errorf("%d bytes of memory, with a maxmemory of 96mb: want twice as much", limit)
	}
}

// Clients are let in by their label, and find each pod under the name that it has.
func TestClientsFindEveryNode(t *testing.T) {
	all := load(t)
	nodes := of[apps.StatefulSet](t, all, "StatefulSet", name)
	service := of[core.Service](t, all, "Service", name)
	if service.Spec.ClusterIP != core.ClusterIPNone || !service.Spec.PublishNotReadyAddresses {
		t.Error("the Service does not give each pod a name, all the time")
	}
	if nodes.Spec.ServiceName != service.Name || !maps.Equal(service.Spec.Selector, nodes.Spec.Template.Labels) {
		t.Errorf("the Service %s does not find the pods", service.Name)
	}
	client := of[apps.Deployment](t, all, "Deployment", "app").Spec.Template
	entry := of[networking.NetworkPolicy](t, all, "NetworkPolicy", name)
	if !matches(&entry.Spec.PodSelector, nodes.Spec.Template.Labels) || len(entry.Spec.Ingress) != 1 || len(entry.Spec.Egress) != 0 ||
		len(entry.Spec.PolicyTypes) != 2 {
		t.Errorf("the policy is about something else: %+v", entry.Spec)
	}
	way := entry.Spec.Ingress[0]
	if len(way.From) != 1 || !matches(way.From[0].PodSelector, client.Labels) || matches(way.From[0].PodSelector, nodes.Spec.Template.Labels) {
		t.Errorf("the policy lets %+v in, want the app and not the nodes", way.From)
	}
	if len(way.Ports) != 1 || way.Ports[0].Port.StrVal != nodes.Spec.Template.Spec.Containers[0].Ports[0].Name {
		t.Errorf("the policy opens %+v", way.Ports)
	}

	env := environment(t, client.Spec.Containers[0], map[string]string{"password": "0123456789abcdef"})
	urls := strings.Fields(env["REDQUORUM_NODES"])
	for i, url := range urls {
		want := fmt.Sprintf("redis://:0123456789abcdef@%s-%d.%s:%d", nodes.Name, i, service.Name, service.Spec.Ports[0].Port)
		if url != want {
			t.Errorf("node %d is at %s, want %s", i, url, want)
		}
	}
	if int(*nodes.Spec.Replicas) != len(urls) {
		t.Errorf("the app knows %d nodes of %d", len(urls), *nodes.Spec.Replicas)
	}
	locks, err := quorum.Open(quorum.Config{}, urls...)
	if err != nil {
		t.Fatal(err)
	}
	if err := locks.Close(); err != nil {
		t.Error(err)
	}
}

// environment is that of a container, as Kubernetes expands it. What is secret comes from the Secret, by reference.
func environment(t *testing.T, c core.Container, secret map[string]string) map[string]string {
	t.Helper()
	env := map[string]string{}
	for _, v := range c.Env {
		value := v.Value
		if v.ValueFrom != nil {
			from := v.ValueFrom.SecretKeyRef
			if from == nil || from.Name != name || secret[from.Key] == "" {
				t.Fatalf("%s comes from %+v", v.Name, v.ValueFrom)
			}
			value = secret[from.Key]
		}
		for known, text := range env {
			value = strings.ReplaceAll(value, "$("+known+")", text)
		}
		if strings.Contains(value, "$(") {
			t.Errorf("%s refers to a variable that does not stand above it", v.Name)
		}
		env[v.Name] = value
	}
	return env
}
