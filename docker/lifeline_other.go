//go:build !unix

package docker

// lifeline has no equivalent here: containers outlive a killed process, unless
// testcontainers' own reaper runs.
type lifeline struct{}

func tie(_, _ string) (*lifeline, error) { return nil, nil }

func (*lifeline) cut() {}
