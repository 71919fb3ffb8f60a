package main

import (
	"errors"
	"fmt"
)

// validatePattern refuses a pattern that Redis would make something of, but hardly what was meant: it knows no wrong ones. A
// set without an end matches nothing, or what nobody would guess, and the list would be empty without a word.
func validatePattern(pattern string) error {
	for i := 0; i < len(pattern); i++ {
		var err error
		switch pattern[i] {
		case '\\':
			if i++; i == len(pattern) {
				err = errors.New(`nothing follows the last \: want \\ for one that is in a name`)
			}
		case '[':
			i, err = endOfSet(pattern, i)
		}
		if err != nil {
			return fmt.Errorf("pattern %q: %w", pattern, err)
		}
	}
	return nil
}

// endOfSet finds the ] of the set that begins at a place, as Redis does: to it, [a-] goes on, being all from a to ].
func endOfSet(pattern string, begin int) (int, error) {
	i := begin + 1
	not := i < len(pattern) && pattern[i] == '^'
	if not {
		i++
	}
	for first := i; i < len(pattern); i++ {
		switch rest := pattern[i:]; {
		case rest[0] == ']' && i == first && !not:
			return 0, errors.New(`nothing is in []: want \[ for a [ that is in a name`)
		case rest[0] == ']':
			return i, nil
		case rest[0] == '\\' && len(rest) > 1:
			i++
		case len(rest) > 2 && rest[1] == '-':
			i += 2
		}
	}
	return 0, fmt.Errorf(`no ] ends what begins with %q: want \[ for a [ that is in a name`, pattern[begin:])
}
