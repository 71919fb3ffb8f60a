package main

import "testing"

// A variant that does not fit the code any more tests nothing.
func TestTableIsInStepWithTheCode(t *testing.T) {
	all := table()
	for _, v := range all {
		if _, err := v.apply("../.."); err != nil {
			t.Errorf("%s: %v", v.name, err)
		}
	}
	if err := check("../..", all); err != nil && !t.Failed() {
		t.Error(err)
	}
	t.Logf("%d variants", len(all))
}
