package main

import "testing"

// A topic that rules of alerts watch is not removed, and the refusal names their groups; without them it goes.
func TestWatchedTopicStays(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	b.ok("", "topics", "apply", "shop")
	b.ok("1\n2\n", "send", "shop")
	b.ok("", "alerts", "apply", "-f", b.write("rules.yaml", "groups: [{name: sales, topic: shop, rules: [{alert: Many, window: 1m, condition: '> 1000'}]}]\n"))
	r := b.run("", "topics", "rm", "shop", "--confirm", "shop")
	if r.code != exitFailed {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	contains(t, r.err, `rules of alerts watch or need topic "shop"`, "sales", "almanac alerts rm sales")
	b.ok("", "topics", "show", "shop")
	b.ok("", "topics", "rm", "shop", "--dry-run")
	b.ok("", "alerts", "rm", "sales")
	contains(t, b.run("other\n", "topics", "rm", "shop").err, "shop goes: ") // it would, were its name typed
}
