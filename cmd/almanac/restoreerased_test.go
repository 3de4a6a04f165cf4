package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
)

// Where the Almanac that a backup is of runs, a restore takes out whom it erases meanwhile too, and purges again what was purged since. A ledger of
// another Almanac does not pass for its own.
func TestRestoreKnowsWhatIsErasedMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	var events strings.Builder
	for n := range 400 {
		fmt.Fprintf(&events, `{"ts":"2026-03-10T00:%02d:%02dZ","user_id":"p-%d","message":"%d"}`+"\n", n/60, n%60, n%4, n)
	}
	b.ok(events.String(), "send", "app", "--format", "ndjson")
	b.inTheEnd(400)
	purged := decoded[erasure.Proof](b, "erase", "app", "--user", "p-1", "--yes", "-o", "json").Erasure.ID
	dest := filepath.Join(b.dir, "backups")
	b.ok("", "backup", dest)
	b.ok("", "erase", "resume", purged, "--purge")

	other := newBox(t)
	other.up()
	if r := b.run("", "restore", dest, "--ledger", other.data(), "--data", filepath.Join(t.TempDir(), "x")); r.code != exitUsage || !strings.Contains(r.err, "another Almanac") {
		t.Errorf("with the ledger of another Almanac: exit %d, %s", r.code, r.err)
	}
	if r := other.run("", "backup", dest); r.code != exitFailed || !strings.Contains(r.err, "another Almanac") {
		t.Errorf("backups of another Almanac in the same place: exit %d, %s", r.code, r.err)
	}

	into := filepath.Join(t.TempDir(), "restored")
	held := b.write("held", "")
	restores := &box{t: t, dir: b.dir, env: append(slices.Clone(b.env), restoreHeldEnv+"="+stepEntered+" "+held)}
	restoring := restores.background("restore", dest, "--ledger", b.data(), "--data", into)
	restoring.says("into the data directory") // by then the ledger was read, and it goes no further than that
	b.ok("", "erase", "app", "--user", "p-2", "--yes")
	if err := os.Remove(held); err != nil {
		t.Fatal(err)
	}
	<-restoring.done
	if restoring.code != exitOK {
		t.Fatalf("exit %d: %s", restoring.code, restoring.stderr())
	}
	contains(t, restoring.stderr(), "carried out, since the backup does not have them: 1 erasure", "purged again, since the backup has their frames: those of 1 erasure", "proven: ", "erasures are known until")
	there := &box{t: t, dir: b.dir, env: append(append([]string(nil), b.env...), envPrefix+"DATA="+into)}
	there.up()
	for person, want := range map[string]string{"p-0": "100", "p-1": "0", "p-2": "0", "p-3": "100"} {
		if n := strings.TrimSpace(there.ok("", "query", "app", "--user", person, "--count", "-o", "table")); n != want {
			t.Errorf("%s events of %s, want %s", n, person, want)
		}
	}
	if p := decoded[erasure.Proof](there, "erase", "show", purged, "-o", "json"); p.Erasure.Purged == nil {
		t.Errorf("what was purged since the backup is back: %+v", p.Erasure)
	}
	there.ok("", "verify")
}
