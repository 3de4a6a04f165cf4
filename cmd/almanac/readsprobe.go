package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/ops"
	"github.com/almanac-events/almanac/internal/tables"
)

const (
	// readsApart is how long after an answer of ClickHouse a gateway asks again.
	readsApart = 2 * time.Second
	// readsWait bounds each question.
	readsWait = 2 * time.Second
)

// readsProbe asks ClickHouse whether it answers each account of a gateway. Inputs need NATS alone: a gateway whose reads are not
// answered is ready, and says so. It asks by itself, so that who asks for readiness does not wait for a server that is away.
type readsProbe struct {
	accounts []readsAccount
	found    atomic.Pointer[[]ops.Reason]
}

// readsAccount is an account that a setting gives, and what is done by it.
type readsAccount struct {
	setting, user, does string
	ask                 func(context.Context) error
}

// newReadsProbe is of the accounts that the settings have.
func newReadsProbe(o *single, db, pages *tables.DB) *readsProbe {
	ping := func(db *tables.DB) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := db.Ping(ctx)
			return err
		}
	}
	first := readsAccount{"clickhouse", userOf(o.d.clickhouse), "reads and jobs", ping(db)}
	p := &readsProbe{accounts: []readsAccount{first}}
	if pages != db {
		p.accounts[0].does = "jobs"
		p.accounts = append(p.accounts, readsAccount{"clickhouse_reads", o.s.GatewayUser, "pages, counts, tails and series", ping(pages)})
	}
	if user, password := o.d.readerUser, o.d.readerPassword; user != "" {
		p.accounts = append(p.accounts, readsAccount{"clickhouse_reader", user, "SQL of people", func(ctx context.Context) error { return db.Accepts(ctx, user, password) }})
	}
	return p
}

// userOf is the account in the address of a server.
func userOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.User.Username()
}

// Run asks until ctx ends.
func (p *readsProbe) Run(ctx context.Context) error {
	for {
		found := p.ask(ctx)
		p.found.Store(&found)
		if err := backoff.Sleep(ctx, readsApart); err != nil {
			return nil //nolint:nilerr // ctx ended
		}
	}
}

func (p *readsProbe) ask(ctx context.Context) (found []ops.Reason) {
	for i := range p.accounts {
		a := &p.accounts[i]
		asked, cancel := context.WithTimeout(ctx, readsWait)
		err := a.ask(asked)
		cancel()
		switch {
		case errors.Is(err, tables.ErrAccount):
			found = append(found, partial(ops.Unaccepted, fmt.Sprintf("ClickHouse refuses the account %q of the setting %s, or its password: %s are not answered, and events are taken", a.user, a.setting, a.does)))
		case err != nil && tables.Classify(err) != tables.Refused: // as for the other accounts
			return append(found, partial(ops.Away, fmt.Sprintf("reads are not answered, and events are taken: no answer of ClickHouse: %v", err)))
		}
	}
	return found
}

func partial(w ops.Word, says string) ops.Reason {
	r := ops.Because(w, "%s", says)
	r.Partial = true
	return r
}

// trouble is what the last answers say.
func (p *readsProbe) trouble() []ops.Reason {
	if found := p.found.Load(); found != nil {
		return *found
	}
	return nil
}
