package certmagiclock_test

import (
	"strings"
	"testing"

	"github.com/caddyserver/certmagic"

	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/quorum/adapter/certmagiclock"
)

func TestBadConfigurationIsRefused(t *testing.T) {
	files, locks := &certmagic.FileStorage{Path: t.TempDir()}, &quorum.Coordinator{}
	s, err := certmagiclock.New(files, locks, certmagiclock.Config{})
	must(t, err)
	for want, c := range map[string]struct {
		storage certmagic.Storage
		locks   quorum.Locker
	}{
		"no storage":                      {nil, locks},
		"no locks":                        {files, nil},
		"takes its locks from here alrea": {s, locks},
	} {
		if _, err := certmagiclock.New(c.storage, c.locks, certmagiclock.Config{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// vault is a storage with something in it that is nobody's business.
type vault struct {
	certmagic.Storage
	Password string
}

func TestStorageIsLoggedByNameAndNotFieldByField(t *testing.T) {
	files := &certmagic.FileStorage{Path: "shared"}
	for want, inner := range map[string]certmagic.Storage{
		"FileStorage:shared, locked by redquorum":        files,
		"*certmagiclock_test.vault, locked by redquorum": &vault{files, "not to be seen"},
	} {
		s, err := certmagiclock.New(inner, &quorum.Coordinator{}, certmagiclock.Config{})
		must(t, err)
		if got := s.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
