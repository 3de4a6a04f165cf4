package faults

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
)

// Row 6: the engine is killed at the rename that makes an insert's part visible, which is after its token was written to
// the deduplication log: the token is burnt, and the same insert, sent again, is answered OK and stores nothing. Where
// there is no strace, or it may not look, the kills are not aimed.
func TestBurntTokens(t *testing.T) {
	t.Parallel()
	_, rnd := Seed(t)
	kills := 6 * Rounds(t)
	// One frame an insert: to ClickHouse an insert of another number of frames has another token.
	h := Build(t, Plan{Linger: 20 * time.Millisecond, BatchRows: 1, Writers: []Writer{{Rate: 500, Linger: 500 * time.Millisecond}}})
	h.StartWriters()
	flows(t, h)
	aimed := 0
	for range kills {
		pid := h.Engine.Engine()
		if killAtRename(t, pid, 1+rnd.IntN(3)) {
			aimed++
		} else {
			if err := backoff.Sleep(t.Context(), Between(rnd, 0, 200*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			h.Engine.killEngine()
		}
		await(t, startWait, func(context.Context) error {
			if h.Engine.Engine() == pid {
				return fmt.Errorf("the engine was not started again")
			}
			return nil
		})
		flows(t, h)
	}
	h.Prove(time.Minute)
	burnt := h.Said(RoleSink, "burnt")
	t.Logf("%d kills, %d of them at a rename; %d burnt tokens met and healed", kills, aimed, burnt)
	if aimed == kills && burnt == 0 {
		t.Error("no kill burnt a token: the aim is off, and the test shows nothing")
	}
}

// killAtRename lets strace kill a process at its n-th rename, and waits until that happened.
func killAtRename(t *testing.T, pid, n int) bool {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	const calls = "rename,renameat,renameat2"
	cmd := exec.CommandContext(ctx, strace, "-f", "-qq", "-o", "/dev/null", "-p", strconv.Itoa(pid), "-e", "trace="+calls,
		"-e", "inject="+calls+":signal=SIGKILL:when="+strconv.Itoa(n))
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil || len(out) > 0 {
		t.Logf("strace: %v: %s", err, out)
		return false
	}
	return true
}
