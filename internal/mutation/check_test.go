package main

import "testing"

func TestTableIsInStepWithTheCode(t *testing.T) {
	for _, v := range table() {
		if _, err := v.apply("../.."); err != nil { t.Errorf("%s: %v", v.name, err) }
	}
}
