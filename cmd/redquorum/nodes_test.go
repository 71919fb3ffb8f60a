package main

import (
	"slices"
	"testing"
)

// The sentinels of a node are separated by commas, as the nodes are.
func TestNodesAreSplitAndTheirSentinelsAreNot(t *testing.T) {
	const behind, other = "redis+sentinel://u:p@10.0.0.1:26379,10.0.0.2,10.0.0.3/m/0?sentinel_password=x", "rediss+sentinel://10.1.0.1,10.1.0.2/n"
	for _, tt := range []struct {
		list string
		want []string
	}{
		{"redis://a,redis://b", []string{"redis://a", "redis://b"}},
		{" redis://a,\n\tunix:///run/b.sock ,", []string{"redis://a", "unix:///run/b.sock"}},
		{behind, []string{behind}},
		{behind + "," + other + ",redis://c", []string{behind, other, "redis://c"}},
		{"redis://c " + other + "\n" + behind, []string{"redis://c", other, behind}},
		{"redis://a,b", []string{"redis://a", "b"}}, // which is refused for its own sake
	} {
		if got, err := split(tt.list, "here"); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, %v, want %q", tt.list, got, err, tt.want)
		}
	}
}
