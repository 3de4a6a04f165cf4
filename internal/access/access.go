package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Action is what an operation does, as far as rights go.
type Action string

// The actions.
const (
	Open    Action = ""        // health, version: nothing is asked
	Send    Action = "send"    // events into a topic
	Change  Action = "change"  // documents, locks, timers of a topic
	Read    Action = "read"    // events, counts, series, documents of a topic
	SQL     Action = "sql"     // statements of the reader's account, over all topics
	Save    Action = "save"    // saved searches of a topic
	Operate Action = "operate" // erasures, dead letters, replays, jobs of a topic
	Admin   Action = "admin"   // topics and their rules, tokens
	Metrics Action = "metrics" // /metrics
)

// Actions are all that ask for a right, with what they are, in words.
var Actions = []struct {
	Action Action
	Short  string
}{
	{Send, "send events into a topic"},
	{Change, "write documents, locks and timers of a topic"},
	{Read, "read events, counts, series, documents of a topic"},
	{Save, "save searches of a topic"},
	{SQL, "ask SQL, of all topics or of those that it is given for"},
	{Operate, "erase, replay, handle dead letters and jobs of a topic"},
	{Admin, "declare topics and their rules"},
	{Metrics, "read `/metrics`"},
}

// Role is a right that a token has.
type Role string

// The roles.
const (
	RoleWrite   Role = "write"
	RoleRead    Role = "read"
	RoleSQL     Role = "sql"
	RoleOperate Role = "operate"
	RoleAdmin   Role = "admin"
	RoleMetrics Role = "metrics"
)

// Right says what a role may do. The tables of SECURITY.md and docs/reference.md are made of it.
type Right struct {
	Role    Role
	Actions []Action
	// Short is for help: what a token of the role can do.
	Short string
	// Everywhere says that the role is not of some topics.
	Everywhere bool
}

// Rights are all roles, from the least to the greatest.
var Rights = []Right{
	{RoleMetrics, []Action{Metrics}, "reads /metrics", true},
	{RoleWrite, []Action{Send, Change}, "sends events, and writes documents and timers", false},
	{RoleRead, []Action{Read, Save}, "reads events, counts, series, usage, documents and timers, and saves searches", false},
	{RoleSQL, []Action{SQL}, "asks SQL, which sees every topic, or those that it is given for", true},
	{RoleOperate, []Action{Read, Save, Operate}, "reads, erases, replays, sends dead letters again and drops them", false},
	{RoleAdmin, []Action{Send, Change, Read, Save, SQL, Operate, Admin, Metrics}, "does everything, and declares topics and tokens", true},
}

// right returns what a role may do.
func right(r Role) (Right, bool) {
	i := slices.IndexFunc(Rights, func(x Right) bool { return x.Role == r })
	if i < 0 {
		return Right{}, false
	}
	return Rights[i], true
}

// OnLoopback are the actions of a client without a secret, at an `up` that listens on loopback:
// what neither changes what is stored nor costs without bound.
var OnLoopback = []Action{Send, Read, SQL, Metrics}

// Every is the topic of a grant that holds for all of them.
const Every = "*"

// Grant is a role for topics.
type Grant struct {
	Role   Role
	Topics []string // names, or Every
}

// covers reports whether a grant allows an action on a topic. An empty topic is "of all topics".
func (g *Grant) covers(a Action, topic string) bool {
	r, ok := right(g.Role)
	if !ok || !slices.Contains(r.Actions, a) {
		return false
	}
	return r.Everywhere && (r.Role != RoleSQL || len(g.Topics) == 0) || slices.Contains(g.Topics, Every) || topic != "" && slices.Contains(g.Topics, topic)
}

// Principal is who asks.
type Principal struct {
	// Name is the token's; the actor of what it does in trails. Empty: a client without a secret.
	Name   string
	Grants []Grant
	// Free are the actions that it may do without a grant.
	Free []Action
	// Where is its row limit: a filter of the rows that it reads; empty: all of them.
	Where string
	// Token is the one it came by; nil without one.
	Token *Token
	// Now is who it is by the tokens of now, or why it may do nothing any more: what takes long asks again. Nil: it stays who it is.
	Now func() (*Principal, error)
	// OnDenied hears what it may not do, where a request is refused for it; nil: it is not heard.
	OnDenied func(*Denied)
}

// Refused tells of what the principal may not do, and returns the error of May as it is.
func (p *Principal) Refused(err error) error {
	if denied := (*Denied)(nil); p.OnDenied != nil && errors.As(err, &denied) {
		p.OnDenied(denied)
	}
	return err
}

// May returns nil where the principal may do an action on a topic, and a *Denied otherwise. An empty topic is an
// operation over all of them, which a grant for some does not cover.
func (p *Principal) May(a Action, topic string) error {
	if a == Open || slices.Contains(p.Free, a) {
		return nil
	}
	for i := range p.Grants {
		if p.Grants[i].covers(a, topic) {
			return nil
		}
	}
	return &Denied{Name: p.Name, Action: a, Topic: topic, Roles: RolesFor(a)}
}

// MayAll returns nil where the principal may do an action on a topic for all of its rows.
func (p *Principal) MayAll(a Action, topic string) error {
	if p.Where != "" {
		return &Denied{Name: p.Name, Action: a, Topic: topic, Rows: true}
	}
	return p.May(a, topic)
}

// Any reports whether the principal may do anything that needs a right.
func (p *Principal) Any() bool { return len(p.Grants)+len(p.Free) > 0 }

// MaySome returns nil where the principal may do an action on some topic.
func (p *Principal) MaySome(a Action) error {
	for i := range p.Grants {
		if r, ok := right(p.Grants[i].Role); ok && slices.Contains(r.Actions, a) {
			return nil
		}
	}
	err := p.May(a, "")
	if denied := (*Denied)(nil); errors.As(err, &denied) {
		denied.Some = true
	}
	return err
}

// Topics returns those of all that the principal may do an action on: what a list shows.
func (p *Principal) Topics(a Action, all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(t string) bool { return p.May(a, t) != nil })
}

// RolesFor returns the roles that allow an action, the least first.
func RolesFor(a Action) (roles []Role) {
	for i := range Rights {
		if slices.Contains(Rights[i].Actions, a) {
			roles = append(roles, Rights[i].Role)
		}
	}
	return roles
}

// Denied is an action that a principal may not do.
type Denied struct {
	Name   string // of the token; empty: there is none
	Action Action
	Topic  string // empty: all topics
	Some   bool   // the right for any topic would do
	Own    bool   // the topic is Almanac's own: no role would do
	Rows   bool   // it has the right, for some rows alone, and what is asked cannot be narrowed to them
	Roles  []Role // that would allow it
}

func (d *Denied) Error() string {
	if d.Rows {
		return fmt.Sprintf("token %q reads some rows alone, and this cannot be narrowed to them: ask with a token without a row limit (where)", d.Name)
	}
	if d.Own {
		return fmt.Sprintf("topic %q is written by Almanac itself alone: what is there is what happened; use a topic of your own", d.Topic)
	}
	of := "all topics"
	switch {
	case d.Some:
		of = "any topic"
	case d.Topic != "":
		of = fmt.Sprintf("topic %q", d.Topic)
	}
	roles := make([]string, len(d.Roles))
	for i, r := range d.Roles {
		roles[i] = string(r)
	}
	want := strings.Join(roles, " or ")
	if d.Name == "" {
		return fmt.Sprintf("this needs a token with the role %s for %s", want, of)
	}
	return fmt.Sprintf("token %q does not have the role %s for %s", d.Name, want, of)
}
