package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A variant is the protocol with one rule broken.
type variant struct {
	// name says what is wrong with it.
	name string
	// rule is what it breaks, in the words of the protocol's own comments.
	rule string
	// file, from the module's root, and the text in it that becomes another one. old occurs exactly once.
	file, old, new string
	// caught names the tests that have to notice, one at least, by package and function: "quorum.TestX".
	caught []string
}

// table is every variant that CI breaks the protocol with.
func table() []variant {
	return slices.Concat(
		attemptVariants, holdVariants, nestedVariants, releaseVariants, handoffVariants, waitVariants, crowdVariants, luaVariants, groundVariants, guardVariants, sentinelVariants,
		clockVariants, streamVariants, prefixVariants,
	)
}

// apply returns the file's text with the edit made.
func (v variant) apply(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, v.file))
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(text, []byte(v.old)); n != 1 {
		return nil, fmt.Errorf("%s has this text %d times, want once:\n%s", v.file, n, v.old)
	}
	return bytes.Replace(text, []byte(v.old), []byte(v.new), 1), nil
}

// check finds what is wrong with a table, as far as that shows without running anything.
func check(root string, variants []variant) error {
	seen := map[string]bool{}
	for _, v := range variants {
		switch {
		case v.name == "" || v.rule == "" || len(v.caught) == 0:
			return fmt.Errorf("variant %q of %s: want a name, a rule and a test", v.name, v.file)
		case seen[v.name]:
			return fmt.Errorf("two variants are called %q", v.name)
		case v.old == v.new:
			return fmt.Errorf("variant %q changes nothing", v.name)
		}
		seen[v.name] = true
		if _, err := v.apply(root); err != nil {
			return fmt.Errorf("variant %q: %w", v.name, err)
		}
		for _, test := range v.caught {
			if pkg, name, ok := strings.Cut(test, "."); !ok || pkg == "" || !strings.HasPrefix(name, "Test") {
				return fmt.Errorf("variant %q: test %q: want package.TestName", v.name, test)
			}
		}
	}
	return nil
}

// matching are the variants whose name or file a regular expression matches.
func matching(variants []variant, only *regexp.Regexp) []variant {
	return slices.DeleteFunc(variants, func(v variant) bool {
		return !only.MatchString(v.name) && !only.MatchString(v.file)
	})
}
