package main

import (
	"errors"
	"strconv"
)

// ordinal is the value of a flag that names a version or a lock. 0 names none: a script whose
// variable is wrong must not write without its guard.
type ordinal uint64

// Set implements pflag.Value.
func (o *ordinal) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return errors.New("it must be a whole number from 1 on")
	}
	*o = ordinal(n)
	return nil
}

// String implements pflag.Value.
func (o *ordinal) String() string { return strconv.FormatUint(uint64(*o), 10) }

// Type implements pflag.Value, so that GetUint64 reads it.
func (o *ordinal) Type() string { return "uint64" }
