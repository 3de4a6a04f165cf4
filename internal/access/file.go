package access

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/almanac-events/almanac/schemas"
)

// Bounds of a file, and of one token; docs/limits.md has the reasons.
const (
	MaxTokens      = 1000
	maxGrantTopics = 1000 // of one right of a token; "*" is all there are
	maxSubject     = 1024 // bytes, of a certificate
	maxWhere       = 2048 // bytes, of a filter
)

// tokenName is what names of tokens look like: they are in logs, metrics and trails.
var tokenName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// record is a token as a file holds it.
type record struct {
	Name    string         `yaml:"name"`
	ID      string         `yaml:"id,omitempty"`
	Hash    string         `yaml:"hash,omitempty"`
	Subject string         `yaml:"subject,omitempty"`
	Write   []string       `yaml:"write,omitempty,flow"`
	Read    []string       `yaml:"read,omitempty,flow"`
	Operate []string       `yaml:"operate,omitempty,flow"`
	SQL     *sqlRecord     `yaml:"sql,omitempty,flow"`
	Metrics bool           `yaml:"metrics,omitempty"`
	Admin   bool           `yaml:"admin,omitempty"`
	Expires string         `yaml:"expires,omitempty"`
	From    []netip.Prefix `yaml:"from,omitempty,flow"`
	Rate    *rateRecord    `yaml:"rate,omitempty,flow"`
	Where   *string        `yaml:"where,omitempty"`
}

// sqlRecord is true, or the topics that SQL is of.
type sqlRecord struct {
	all    bool
	topics []string
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *sqlRecord) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode {
		return n.Decode(&s.topics)
	}
	return n.Decode(&s.all)
}

// MarshalYAML implements yaml.Marshaler.
func (s sqlRecord) MarshalYAML() (any, error) {
	if len(s.topics) > 0 {
		return s.topics, nil
	}
	return s.all, nil
}

type rateRecord struct {
	Events float64 `yaml:"events,omitempty"`
	Bytes  float64 `yaml:"bytes,omitempty"`
}

// Parse reads a file of tokens:
//
//	tokens:
//	  - {name: api, id: k3f9q2, hash: "sha256:…", write: [app, auth], expires: 2027-11-01, rate: {events: 5000, bytes: 10485760}}
//	  - {name: grafana, id: p0x7aa, hash: "sha256:…", read: ["*"], sql: true, from: [10.0.0.0/8]}
//	  - {name: shipper, subject: "CN=shipper,O=Acme", write: [app]}
//	  - {name: analyst, id: q7t3zb, hash: "sha256:…", sql: [app, auth]}
//	  - {name: acme, id: m2r8vw, hash: "sha256:…", read: [app], where: "attributes.tenant = 'acme'"}
//
// An error names the token and what is wrong with it, and holds no secret.
func Parse(text []byte) ([]Token, error) {
	var file struct {
		Tokens []record `yaml:"tokens"`
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %s", ErrToken, Masked(err.Error()))
	}
	if len(file.Tokens) > MaxTokens {
		return nil, fmt.Errorf("%w: a file holds at most %d, not %d", ErrToken, MaxTokens, len(file.Tokens))
	}
	var out []Token
	for i := range file.Tokens {
		t, err := file.Tokens[i].token()
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(o Token) bool { return o.ID == t.ID && o.Subject == t.Subject }) {
			return nil, fmt.Errorf("%w: %q has the id or the subject of another: each has its own", ErrToken, t.Name)
		}
		out = append(out, t)
	}
	return out, nil
}

// Text writes tokens as Parse reads them.
func Text(all []Token) ([]byte, error) {
	records := make([]record, len(all))
	for i := range all {
		records[i] = recordOf(&all[i])
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	err := e.Encode(map[string]any{"tokens": records})
	return b.Bytes(), errors.Join(err, e.Close())
}

// Validate reports what is wrong with a token.
func (t *Token) Validate() error {
	r := recordOf(t)
	_, err := r.token()
	return err
}

// token checks a record.
func (r *record) token() (t Token, err error) {
	bad := func(format string, args ...any) (Token, error) {
		return Token{}, fmt.Errorf("%w: %q: %s", ErrToken, Masked(r.Name), Masked(fmt.Sprintf(format, args...)))
	}
	if !tokenName.MatchString(r.Name) {
		return bad("a name is at most 63 of a-z, 0-9, '.', '_' and '-'")
	}
	digest, ok := parseDigest(r.Hash)
	switch {
	case r.Name == LocalName || r.Name == Almanac.Name:
		return bad("the name is that of Almanac's own records of who did what; choose another")
	case r.Subject != "" && (r.ID != "" || r.Hash != ""):
		return bad("subject stands in place of id and hash: leave those out")
	case r.Subject != "" && (len(r.Subject) > maxSubject || !strings.Contains(r.Subject, "=")):
		return bad("subject %q: expected that of a certificate, such as CN=api", r.Subject)
	case r.Subject == "" && (!ok || len(r.ID) != idLen):
		return bad("id and hash are as `almanac token add` prints them")
	}
	t = Token{Name: r.Name, ID: r.ID, Digest: digest, Subject: r.Subject, From: r.From}
	var sql sqlRecord
	if r.SQL != nil {
		sql = *r.SQL
	}
	switch {
	case r.SQL != nil && !sql.all && sql.topics != nil && len(sql.topics) == 0:
		return bad("sql is of no topic: leave it out, or write true or topics")
	case len(sql.topics) > maxSQLTopics:
		return bad("sql has more than %d topics", maxSQLTopics)
	case slices.Contains(sql.topics, Every):
		return bad("sql of all topics is written true")
	}
	for _, g := range []Grant{{RoleWrite, r.Write}, {RoleRead, r.Read}, {RoleOperate, r.Operate}, {RoleSQL, sql.topics}} {
		if len(g.Topics) == 0 {
			continue
		}
		if len(g.Topics) > maxGrantTopics {
			return bad("%s has more than %d topics", g.Role, maxGrantTopics)
		}
		for _, topic := range g.Topics {
			if topic != Every && schemas.ValidateTopicName(topic) != nil {
				return bad("%s: %q is not a topic's name, nor *", g.Role, topic)
			}
		}
		t.Grants = append(t.Grants, g)
	}
	for _, g := range []struct {
		role Role
		has  bool
	}{{RoleSQL, sql.all}, {RoleMetrics, r.Metrics}, {RoleAdmin, r.Admin}} {
		if g.has {
			t.Grants = append(t.Grants, Grant{Role: g.role})
		}
	}
	if len(t.Grants) == 0 {
		return bad("it has no role: give it write, read, sql, operate, admin or metrics")
	}
	if t.Where, err = r.limit(t.Grants); err != nil {
		return bad("%v", err)
	}
	if r.Expires != "" {
		if t.Expires, err = parseEnd(r.Expires); err != nil {
			return bad("expires %q: expected a date such as 2027-11-01, or a time", r.Expires)
		}
	}
	if r.Rate != nil {
		t.Rate = Rate{Events: r.Rate.Events, Bytes: r.Rate.Bytes}
	}
	if !(t.Rate.Events >= 0 && t.Rate.Bytes >= 0) || math.IsInf(t.Rate.Events+t.Rate.Bytes, 0) {
		return bad("a rate is a number of events and a size, each a second, and not negative")
	}
	return t, nil
}

// Limited are the roles of a token with a row limit: what else there is, cannot be narrowed to rows.
var Limited = []Role{RoleRead}

// limit checks a row limit beside the roles of its token. Whether it is a filter is found out by who reads.
func (r *record) limit(grants []Grant) (string, error) {
	if r.Where == nil {
		return "", nil
	}
	where := strings.TrimSpace(*r.Where)
	if where == "" {
		return "", errors.New("where is empty: leave it out, or name the rows")
	}
	if len(where) > maxWhere {
		return "", fmt.Errorf("where has %d bytes, the limit is %d", len(where), maxWhere)
	}
	for _, g := range grants {
		if !slices.Contains(Limited, g.Role) {
			return "", fmt.Errorf("where limits the rows that are read, and role %s cannot be narrowed to them: make another token for it", g.Role)
		}
	}
	return where, nil
}

func parseEnd(s string) (time.Time, error) {
	if at, err := time.Parse(time.DateOnly, s); err == nil {
		return at, nil
	}
	return time.Parse(time.RFC3339, s)
}

// recordOf is a token as it is held.
func recordOf(t *Token) record {
	r := record{Name: t.Name, ID: t.ID, Subject: t.Subject, From: t.From}
	if t.Where != "" {
		r.Where = &t.Where
	}
	if t.Subject == "" {
		r.Hash = t.Digest.String()
	}
	for _, g := range t.Grants {
		switch g.Role {
		case RoleWrite:
			r.Write = g.Topics
		case RoleRead:
			r.Read = g.Topics
		case RoleOperate:
			r.Operate = g.Topics
		case RoleSQL:
			r.SQL = &sqlRecord{all: len(g.Topics) == 0, topics: g.Topics}
		case RoleMetrics:
			r.Metrics = true
		case RoleAdmin:
			r.Admin = true
		}
	}
	if !t.Expires.IsZero() {
		r.Expires = t.Expires.UTC().Format(time.RFC3339)
	}
	if t.Rate != (Rate{}) {
		r.Rate = &rateRecord{Events: t.Rate.Events, Bytes: t.Rate.Bytes}
	}
	return r
}
