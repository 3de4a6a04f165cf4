package main

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/ops"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
)

const (
	// grantsApart is how far apart a part asks ClickHouse what its accounts may do, so that doctor names what was taken away within
	// 5 seconds. It is one statement of an account that lacks nothing.
	grantsApart = 4 * time.Second
	// lackingApart is how far apart an account is asked about that lacks something, which takes some dozens of statements. What it told
	// the registry lasts longer.
	lackingApart = 7 * time.Second
	// tellWait bounds telling it.
	tellWait = time.Second
	// grantsWait bounds the statements of one account.
	grantsWait = 2 * time.Second
)

// ownAccounts finds out what a part's accounts at ClickHouse may not do, as ownRights does of its user of NATS.
type ownAccounts struct {
	part string
	log  zerolog.Logger
	nc   *nats.Conn // by which it tells the operator's doctor; nil: it does not
	all  []*ownAccount
	wait time.Duration // grantsWait
}

// ownAccount is an account that a setting gives.
type ownAccount struct {
	setting, id string // id is under which it tells
	lacks       lacksGrants

	found atomic.Pointer[registry.Lacking]
	told  bool      // what still holds
	next  time.Time // when it is asked about again; the zero time: at the next look
}

// lacksGrants asks ClickHouse what an account lacks, and says whose rights it needs.
type lacksGrants func(context.Context) (*registry.Lacking, error)

func newOwnAccounts(part string, log zerolog.Logger) *ownAccounts {
	return &ownAccounts{part: part, log: log, wait: grantsWait}
}

// of has it ask what the account of a setting lacks, by another connection than before where the part starts again.
func (o *ownAccounts) of(setting string, lacks lacksGrants) {
	i := slices.IndexFunc(o.all, func(a *ownAccount) bool { return a.setting == setting })
	if i < 0 {
		o.all = append(o.all, &ownAccount{setting: setting, id: rand.Text()})
		i = len(o.all) - 1
	}
	o.all[i].lacks = lacks
}

// ofGateway has it ask about the accounts of a gateway, as doctor does with its settings.
func (o *ownAccounts) ofGateway(d endpoints, db, pages *tables.DB) {
	o.of("clickhouse", grantsOf(db, nil))
	if pages != db {
		o.of("clickhouse_reads", grantsOf(pages, access.ClickHouseUserOf(access.UserGateway)))
	}
	if d.readerUser != "" {
		o.of("clickhouse_reader", grantsOfReader(db, d.readerUser, d.readerPassword))
	}
}

// grantsOf asks about the account of a connection. need is whose rights it has to have; nil: its namesake's, else the operator's.
func grantsOf(db *tables.DB, need *access.ClickHouseUser) lacksGrants {
	name := "" // of the connection, for good
	return func(ctx context.Context) (_ *registry.Lacking, err error) {
		if name == "" {
			if name, err = db.CurrentUser(ctx); err != nil {
				return nil, err
			}
		}
		of := need
		if of == nil {
			of = access.ClickHouseWorkOf(name)
		}
		lacks, err := of.Lacks(db.Database, func(rights string) (bool, error) { return db.Has(ctx, rights) })
		return &registry.Lacking{User: name, Needs: of.Name, Database: db.Database, Lacks: lacks}, err
	}
}

// grantsOfReader asks about the account by which people ask SQL.
func grantsOfReader(db *tables.DB, user, password string) lacksGrants {
	need := access.ClickHouseUserOf(access.UserReader)
	return func(ctx context.Context) (*registry.Lacking, error) {
		lacks, err := need.Lacks(db.Database, func(rights string) (bool, error) { return db.HasAs(ctx, user, password, rights) })
		return &registry.Lacking{User: user, Needs: need.Name, Database: db.Database, Lacks: lacks}, err
	}
}

// Run asks until ctx ends.
func (o *ownAccounts) Run(ctx context.Context) error {
	o.look(ctx)
	for range backoff.Ticks(ctx, grantsApart) {
		o.look(ctx)
	}
	return nil
}

// look asks once about each account.
func (o *ownAccounts) look(ctx context.Context) {
	var all sync.WaitGroup
	for _, a := range o.all {
		if time.Now().Before(a.next) {
			continue
		}
		all.Go(func() { o.lookAt(ctx, a) })
	}
	all.Wait()
}

func (o *ownAccounts) lookAt(ctx context.Context, a *ownAccount) {
	asked, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	now, err := a.lacks(asked)
	known := a.found.Load()
	if err != nil && (now == nil || len(now.Lacks) == 0 || known != nil && len(known.Lacks) > 0) {
		// What was found stays; who is asked by this process says that ClickHouse is away, or refuses the account.
		if known != nil && a.told {
			o.tells(ctx, a, known)
		}
		return
	}
	if now.Part, a.next = o.part, (time.Time{}); len(now.Lacks) > 0 {
		a.next = time.Now().Add(lackingApart)
	}
	o.says(a, now)
	o.tells(ctx, a, now)
}

// says logs what an account lacks now, where that is something else than before.
func (o *ownAccounts) says(a *ownAccount, now *registry.Lacking) {
	before := a.found.Swap(now)
	switch {
	case before == nil && len(now.Lacks) == 0 || before != nil && slices.Equal(before.Lacks, now.Lacks):
	case len(now.Lacks) == 0:
		o.log.Info().Str("account", now.User).Str("setting", a.setting).Msg("clickhouse: the account has all rights that it needs")
	default:
		_, do := lackingWords(now)
		o.log.Error().Str("account", now.User).Str("setting", a.setting).Strs("lacks", now.Lacks).Msg("clickhouse: the account may not do what this part needs: " + do)
	}
}

// tells has the operator's doctor know what is lacked, or no longer.
func (o *ownAccounts) tells(ctx context.Context, a *ownAccount, now *registry.Lacking) {
	if o.nc == nil || !a.told && len(now.Lacks) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tellWait)
	defer cancel()
	err := registry.TellLacking(ctx, o.nc, a.id, *now)
	a.told = err != nil || len(now.Lacks) > 0
}

// trouble is what the last answers say.
func (o *ownAccounts) trouble() (found []ops.Reason) {
	if o == nil {
		return nil
	}
	for _, a := range o.all {
		if now := a.found.Load(); now != nil && len(now.Lacks) > 0 {
			says, do := lackingWords(now)
			found = append(found, partial(ops.RightGone, "the ClickHouse account "+says+": "+do))
		}
	}
	return found
}

func lackingWords(l *registry.Lacking) (found, do string) {
	return access.ClickHouseUserOf(l.Needs).Lacking(l.User, l.Database, l.Lacks)
}
