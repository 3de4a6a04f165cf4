//go:build !linux

package embedded_test

import (
	"os"
	"testing"
)

func inheritable(_ *testing.T, f *os.File) string { return f.Name() }
