package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// A privacy rule is waited for until every running router has it. One that does not get it is named, and the verb ends
// with 3; it is there all the same, and the next call waits for it again. A router that ended is not waited for.
func TestApplyNamesRoutersWithoutTheRule(t *testing.T) {
	t.Parallel()
	b := newBox(t, rulesWaitEnv+"=10s") // the verb below waits for all of it
	b.up()
	applies := func(rule string) { // once the up's own router has it
		t.Helper()
		embeddedtest.Eventually(t, maxWait, func() error {
			_, err := b.try("topics", "apply", "auth", "--pii", rule)
			return err
		})
	}
	applies("email:drop")
	nc := b.connect()
	reg, err := registry.Open(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	frozen := reg.Join(t.Context(), schemas.RoleRouter) // it beats once, and never reads a topic
	r := b.run("", "topics", "apply", "auth", "--pii", "phone:drop", "-o", "json")
	if r.code != exitPartial {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	contains(t, r.err, "router "+frozen.Self(), fmt.Sprintf("process %d on", os.Getpid()), "run this again")
	contains(t, r.out, `"changed"`)
	if topic, err := reg.Topic(t.Context(), "auth"); err != nil || len(topic.PII) != 2 || topic.PII[1].Since != 2 {
		t.Errorf("%+v, %v", topic, err)
	}
	nc.Close() // as the kernel does for a process that dies
	applies("phone:drop")
}
