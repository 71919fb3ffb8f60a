package certmagiclock

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/caddyserver/certmagic"

	"github.com/redquorum/redquorum/quorum"
)

// DefaultPrefix is the default of [Config.Prefix].
const DefaultPrefix = "certmagic:"

// Config is how a storage locks. The zero value of each field means its default.
type Config struct {
	// Prefix goes before the names that CertMagic gives its locks, such as issue_cert_example.com, so that they meet no
	// other locks. Servers that share a storage must have the same. Default "certmagic:".
	Prefix string

	// Logger hears of leases that were lost. Default nil: silent.
	Logger *slog.Logger
}

// A Storage is a certmagic.Storage that takes its locks from a quorum of nodes. It is safe for concurrent use.
type Storage struct {
	certmagic.Storage
	locks quorum.Locker
	cfg   Config

	mu       sync.Mutex
	sections map[string]*section
}

var (
	_ certmagic.Storage          = (*Storage)(nil)
	_ certmagic.TryLocker        = (*Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*Storage)(nil)
)

// New returns a storage that keeps everything where storage does, and takes its locks from locks, which stays the
// caller's to close. What storage can do beside a certmagic.Storage, its own locks above all, is not used.
func New(storage certmagic.Storage, locks quorum.Locker, cfg Config) (*Storage, error) {
	switch {
	case storage == nil:
		return nil, errors.New("certmagiclock: no storage: want the one that keeps the certificates")
	case locks == nil:
		return nil, errors.New("certmagiclock: no locks: want a *quorum.Coordinator, or what stands in for one")
	}
	if inner, ok := storage.(*Storage); ok {
		return nil, fmt.Errorf("certmagiclock: %v takes its locks from here already", inner)
	}
	if cfg.Prefix == "" {
		cfg.Prefix = DefaultPrefix
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Storage{Storage: storage, locks: locks, cfg: cfg, sections: make(map[string]*section)}, nil
}

// String names the storage underneath. CertMagic logs its storage, which without this would be printed field by field,
// passwords included.
func (s *Storage) String() string {
	if inner, ok := s.Storage.(fmt.Stringer); ok {
		return inner.String() + ", locked by redquorum"
	}
	return fmt.Sprintf("%T, locked by redquorum", s.Storage)
}
