package main

import (
	"fmt"
	"strconv"
	"time"
)

// whole is a flag for a number within bounds.
type whole struct {
	value    *int
	min, max int
}

// Set refuses what is no such number. The flag and the text are in the message already.
func (w whole) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < w.min || n > w.max {
		return fmt.Errorf("want a whole number from %d to %d", w.min, w.max)
	}
	*w.value = n
	return nil
}

func (w whole) String() string {
	if w.value == nil {
		return ""
	}
	return strconv.Itoa(*w.value)
}

// Type is what the help calls the value.
func (whole) Type() string { return "number" }

// span is a flag for a time within bounds.
type span struct {
	value    *time.Duration
	min, max time.Duration
}

// Set refuses what is no such time.
func (s span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < s.min || d > s.max {
		example := *s.value
		if example == 0 {
			example = min(max(time.Second, s.min), s.max)
		}
		return fmt.Errorf("want a time from %v to %v, such as %v", s.min, s.max, example)
	}
	*s.value = d
	return nil
}

// String is what the help calls the default. Zero is none: what comes of it, the usage says.
func (s span) String() string {
	if s.value == nil || *s.value == 0 {
		return ""
	}
	return s.value.String()
}

// Type is what the help calls the value.
func (span) Type() string { return "time" }
