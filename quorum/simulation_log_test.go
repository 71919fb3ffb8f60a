package quorum_test

import (
	"context"
	"log/slog"
	"strings"
)

// suspicions is a log that counts the clocks that a client found to run off.
type suspicions struct{ run *run }

func (s suspicions) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (s suspicions) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "a node's clock ran off") {
		s.run.accused.Add(1)
	}
	return nil
}

func (s suspicions) WithAttrs([]slog.Attr) slog.Handler { return s }
func (s suspicions) WithGroup(string) slog.Handler      { return s }
