package integration

import (
	"testing"
	"time"
)

// A table that a user made like a topic's, empty or with its rows, is not a lost topic.
func TestCopiedTableIsNoLostTopic(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	e.router()
	e.sink()
	e.say(e.producer("app"), 5)
	e.stored("app", 5, 30*time.Second)
	for _, name := range []string{"empty", "copied"} {
		e.exec("CREATE TABLE %s AS %s", e.table(name), e.table("app"))
	}
	e.exec("INSERT INTO %s SELECT * FROM %s", e.table("copied"), e.table("app"))
	e.verify(5)
	if plan := e.plan(); plan.Todo() > 0 {
		t.Errorf("repair plans %+v", plan.Actions)
	}
}
