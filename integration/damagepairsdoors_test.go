package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// knows reports whether a store knows that a person was erased. The ledger has three copies. Where
// the registry, its copies and ClickHouse all went back to before an erasure, nothing tells its rows
// from others, and verify has nothing to name: an operator who restores all three enters it again.
func (h *pairCluster) knows(person string) bool {
	return h.cell.has(person == secondPerson, storeRegistry, storeCopies, storeClickHouse)
}

// erased are the persons that no door may show.
func (h *pairCluster) erased() (persons []string) {
	for _, person := range []string{firstPerson, secondPerson} {
		if h.knows(person) {
			persons = append(persons, person)
		}
	}
	return persons
}

// leftAlone is a cell in which every copy of the ledger is lost: verify says so of each topic, and
// neither parts nor a repair bring anything back.
func (h *pairCluster) leftAlone() string {
	h.t.Helper()
	rep, err := h.still()
	h.must(err)
	for _, topic := range []string{"app", "customers"} {
		if !slices.ContainsFunc(rep.Problems, func(p string) bool {
			return strings.HasPrefix(p, fmt.Sprintf("topic %s: ", topic)) && strings.Contains(p, (&verify.Lost{Kept: true, Unledgered: true}).Do())
		}) {
			h.t.Errorf("%s: verify does not say that nothing tells what was erased of %s: %q", h.cell, topic, rep.Problems)
		}
	}
	h.heal()
	for _, topic := range []string{"app", "customers"} {
		if _, err := h.reg.Topic(h.t.Context(), topic); err == nil {
			h.t.Errorf("%s: a repair restored %s", h.cell, topic)
		}
	}
	return "named: what was erased is not known, and nothing is brought back before an operator decides"
}

// ways fails where an erased person is found by a query, a document or a timer.
func (h *pairCluster) ways(when string, fault func(string, ...any)) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), maxWait*10*time.Second)
	defer cancel()
	for _, person := range h.erased() {
		page, err := h.reader().Query(ctx, query.Request{Topic: "app", Where: "user_id = '" + person + "'"})
		if err == nil && len(page.Events) > 0 {
			fault("%s: a query finds %d events of %s", when, len(page.Events), person)
		}
		if c, err := h.collection(); err == nil {
			if d, err := c.Load(ctx, "of-"+person); err == nil {
				fault("%s: the document of %s is there: %s", when, person, d.Body)
			}
			if page, err := c.List(ctx, documents.Selection{}); err == nil && slices.ContainsFunc(page.Documents, func(d *documents.Document) bool { return d.ID == "of-"+person }) {
				fault("%s: a list has the document of %s", when, person)
			}
			if past, err := c.History(ctx, "of-"+person); err == nil && slices.ContainsFunc(past, func(d *documents.Document) bool { return strings.Contains(string(d.Body), person) }) {
				fault("%s: a history has the document of %s", when, person)
			}
		}
		if tm, err := h.timed.Get(ctx, "g", "of-"+person); err == nil && (len(tm.Payload) > 0 || !tm.State.Over()) {
			fault("%s: the timer of %s is there: %s %s", when, person, tm.State, tm.Payload)
		}
	}
}

// search fails where an erased person is in a table.
func (h *pairCluster) search(fault func(string, ...any)) {
	h.t.Helper()
	for topic, column := range map[string]string{"app": "user_id", "customers": "user_id", schemas.DefaultTimerTopic: "user_id"} {
		for _, person := range h.erased() {
			n, err := h.ask("SELECT count() FROM %s WHERE %s = '%s'", h.table(topic), column, person)
			if err == nil && n > 0 {
				fault("the table of %s has %d rows of %s", topic, n, person)
			}
		}
	}
}
