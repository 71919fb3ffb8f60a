package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// manifests are all objects of the folder, by kind and name.
type manifests map[string]any

// kinds are the types that the manifests may have.
var kinds = map[string]func() any{
	"v1/ConfigMap":                       func() any { return new(core.ConfigMap) },
	"v1/Service":                         func() any { return new(core.Service) },
	"apps/v1/StatefulSet":                func() any { return new(apps.StatefulSet) },
	"apps/v1/Deployment":                 func() any { return new(apps.Deployment) },
	"policy/v1/PodDisruptionBudget":      func() any { return new(policy.PodDisruptionBudget) },
	"networking.k8s.io/v1/NetworkPolicy": func() any { return new(networking.NetworkPolicy) },
}

// load reads all manifests, strictly.
func load(t *testing.T) manifests {
	t.Helper()
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	all := manifests{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, document := range bytes.Split(text, []byte("\n---\n")) {
			kind, object, err := decode(document)
			if err != nil {
				t.Fatalf("%s, document %d: %v", file, i+1, err)
			}
			if all[kind] != nil {
				t.Fatalf("%s: a second %s", file, kind)
			}
			all[kind] = object
		}
	}
	return all
}

// decode reads one manifest. It refuses a kind that is not expected, a field that its type does not have, and a key that is
// there twice.
func decode(document []byte) (key string, object any, err error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal(document, &head); err != nil {
		return "", nil, err
	}
	empty, ok := kinds[head.APIVersion+"/"+head.Kind]
	if !ok || head.Metadata.Name == "" {
		return "", nil, fmt.Errorf("a %s %s called %q: want a name, and one of the kinds that these tests know", head.APIVersion,
			head.Kind, head.Metadata.Name)
	}
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return "", nil, err
	}
	object = empty()
	strict, err := json.UnmarshalStrict(text, object) // minds the case of a field, as the API does
	return head.Kind + "/" + head.Metadata.Name, object, errors.Join(append(strict, err)...)
}

// of is the object of one kind and name.
func of[T any](t *testing.T, all manifests, kind, name string) *T {
	t.Helper()
	object, ok := all[kind+"/"+name].(*T)
	if !ok {
		t.Fatalf("there is no %s %q", kind, name)
	}
	return object
}

func TestStrictlyMeansStrictly(t *testing.T) {
	for manifest, want := range map[string]string{
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n":                                   "kinds that these tests know",
		"apiVersion: v1\nkind: Service\n":                                                       "want a name",
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {clusterIp: None}\n":         "clusterIp",
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: none}\n":             "ports",
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {}\nspec: {type: a}\n":       "spec",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: {b: c}}\n":             "data",
		"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\nspec: {replicas: five}\n": "replicas",
	} {
		if _, _, err := decode([]byte(manifest)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error that names %s", manifest, err, want)
		}
	}
}
