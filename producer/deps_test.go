package producer

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// linked is every module that a program gets with this package. An application pays
// for each in size and in what it has to audit, so the list only grows on purpose.
var linked = []string{
	"github.com/go-faster/city",
	"github.com/klauspost/compress",
	"github.com/nats-io/nats.go",
	"github.com/nats-io/nkeys",
	"github.com/nats-io/nuid",
	"golang.org/x/crypto",
	"golang.org/x/sys",
}

// Programs that log by slog do not link zerolog, nor what it needs.
func TestLinkedModules(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(string(out))
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, linked) {
		t.Fatalf("the package links\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(linked, "\n"))
	}
}
