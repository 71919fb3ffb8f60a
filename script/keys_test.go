package script_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/redquorum/redquorum/script"
)

// What is found among other people's keys is told by its holder.
func TestHolderIsToldByItsShape(t *testing.T) {
	const id = "01234567-89ab-cdef-0123-456789ABCDEF"
	for text, want := range map[string]bool{
		uuid.NewString() + ":1":                  true,
		id + ":1":                                true,
		id + ":18446744073709551615":             true,
		id + ":184467440737095516150":            false,
		id + ":":                                 false,
		id + ":-1":                               false,
		id + ":1:write":                          false, // of Redisson's read-write lock
		id + ":one":                              false,
		id:                                       false,
		id + "1:1":                               false,
		"0" + id + ":1":                          false,
		"0123456789ab-cdef-0123-45678-9ab:1":     false,
		"01234567-89ab-cdef-0123-456789abcdeg:1": false,
		"01234567_89ab_cdef_0123_456789abcdef:1": false,
		"mode":                                   false,
		"probe":                                  false,
		"":                                       false,
	} {
		if got := script.IsHolder(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
