package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// A bench tries variants out, some at a time.
type bench struct {
	root     string // of the module
	parallel int
	timeout  time.Duration
	whole    bool // run whole suites instead of the tests that the table names

	mu  sync.Mutex
	out io.Writer
}

func (b *bench) say(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintf(b.out, format+"\n", args...)
}

// table tries every variant out. The error says which survived, or what is wrong with the table.
func (b *bench) table(ctx context.Context, variants []variant) error {
	if err := check(b.root, variants); err != nil {
		return err
	}
	start := time.Now()
	if !b.whole {
		if err := b.unbroken(ctx, variants); err != nil {
			return err
		}
		b.say("without a variant the tests pass (%.1fs)", time.Since(start).Seconds())
	}

	var mu sync.Mutex
	var survivors, errs []error
	tried := b.each(ctx, len(variants), func(i int) (string, error) {
		v := variants[i]
		text, err := v.apply(b.root)
		if err != nil {
			return "", err
		}
		s := of(v.caught)
		if b.whole {
			s = wholeSuite(suitesFor(v.file)...)
		}
		o, err := b.try(ctx, s, overlay{v.file, text})
		if err != nil {
			return "", err
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case o.broken != nil:
			errs = append(errs, fmt.Errorf("%s: %w", v.name, o.broken))
			return fmt.Sprintf("ERROR     %s: %v", v.name, o.broken), nil
		case len(o.failed) == 0:
			survivors = append(survivors, fmt.Errorf("survived: %s (%s: %q)", v.name, v.file, v.rule))
			return "SURVIVED  " + v.name, nil
		}
		return fmt.Sprintf("caught    %s: %s", v.name, o.by()), nil
	})
	b.say("%d variants, %d survived, %d errors, %.0fs", len(variants), len(survivors), len(errs), time.Since(start).Seconds())
	return errors.Join(append(append(errs, survivors...), tried)...)
}

// by names the tests that noticed.
func (o outcome) by() string {
	text := strings.Join(o.failed, ", ")
	if o.hung {
		text += " (hung)"
	}
	return text
}

// unbroken runs the tests that the variants name on the code as it is. All of them have to be there, and to pass: a
// test that is skipped, or fails anyway, catches nothing.
func (b *bench) unbroken(ctx context.Context, variants []variant) error {
	var tests []string
	for _, v := range variants {
		tests = append(tests, v.caught...)
	}
	slices.Sort(tests)
	tests = slices.Compact(tests)
	if len(tests) == 0 {
		return errors.New("no variant")
	}
	s := of(tests)
	s.timeout, s.whole = 5*time.Minute, true
	o, err := s.test(ctx, b.root, nil)
	switch {
	case err != nil:
		return err
	case o.broken != nil:
		return o.broken
	case len(o.failed) > 0:
		return fmt.Errorf("without any variant these tests fail: %s", o.by())
	}
	for _, test := range tests {
		if !slices.Contains(o.passed, test) {
			return fmt.Errorf("%s did not run: no such test, or it was skipped", test)
		}
	}
	return nil
}

// try runs a suite over one change. A test that hangs has noticed, and one that is slow has not: so it has three times as long
// before it counts.
func (b *bench) try(ctx context.Context, s suite, change overlay) (outcome, error) {
	s.timeout, s.whole = b.timeout, b.whole
	o, err := s.test(ctx, b.root, &change)
	if o.hung && err == nil {
		s.timeout *= 3
		return s.test(ctx, b.root, &change)
	}
	return o, err
}

// each does n things, some at a time, and says how each of them ended.
func (b *bench) each(ctx context.Context, n int, do func(i int) (string, error)) error {
	var group errgroup.Group
	group.SetLimit(b.parallel)
	for i := range n {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			start := time.Now()
			text, err := do(i)
			if err == nil && text != "" {
				b.say("%3d/%d %5.1fs  %s", i+1, n, time.Since(start).Seconds(), text)
			}
			return err
		})
	}
	return group.Wait()
}

// suitesFor are the packages whose tests may notice a change of a file: its own, and the one that everything is for.
func suitesFor(file string) []string {
	if own := path.Dir(file); own != "quorum" {
		return []string{own, "quorum"}
	}
	return []string{"quorum"}
}
