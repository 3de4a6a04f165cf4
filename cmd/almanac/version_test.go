package main

import (
	"runtime/debug"
	"testing"
)

// TestBuiltVersion: what `go install …@v1.2.3` built says so; one without a version says dev.
func TestBuiltVersion(t *testing.T) {
	for _, c := range []struct {
		name string
		info *debug.BuildInfo
		ok   bool
		want string
	}{
		{"installed by its version", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, true, "v1.2.3"},
		{"built in a folder", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, true, "dev"},
		{"nothing known", nil, false, "dev"},
		{"no version", &debug.BuildInfo{}, true, "dev"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := builtVersion(c.info, c.ok); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
