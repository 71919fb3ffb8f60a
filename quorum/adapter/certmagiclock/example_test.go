package certmagiclock_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/caddyserver/certmagic"

	"github.com/redquorum/redquorum/node/embedded"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/quorum/adapter/certmagiclock"
)

// Every server of a name has this storage: the folder is shared, over NFS say, and the locks are a quorum's.
func Example() {
	folder, err := os.MkdirTemp("", "certificates-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	nodes, err := embedded.Start(5) // in production: five independent Redis masters
	if err != nil {
		log.Fatal(err)
	}
	defer nodes.Close()
	locks, err := quorum.Open(quorum.Config{}, nodes.URLs()...)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	storage, err := certmagiclock.New(&certmagic.FileStorage{Path: folder}, locks, certmagiclock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	certmagic.Default.Storage = storage // before certmagic.HTTPS, or whatever else is called

	ctx := context.Background()
	if err := storage.Lock(ctx, "issue_cert_example.com"); err != nil { // as CertMagic does
		log.Fatal(err)
	}
	state, err := locks.Inspect(ctx, "certmagic:issue_cert_example.com")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("held:", state.Holder != "")
	fmt.Println(storage.Unlock(ctx, "issue_cert_example.com"))
	// Output:
	// held: true
	// <nil>
}
