package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/access/keep"
	"github.com/almanac-events/almanac/query/filter"
)

func (a *app) tokenCommand() *cobra.Command {
	add := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a token and print its secret, once",
		Long: `Make a token and print its secret, once. The file holds a digest of it alone. What
runs takes the token up within two seconds. One with --subject has no secret: a
certificate of the client says who it is.

Roles: ` + roleHelp(),
		Example: `  almanac token add api --write app,auth --expires 2027-11-01
  almanac token add grafana --read '*' --sql --from 10.0.0.0/8
  almanac token add acme --read app --where "attributes.tenant = 'acme'"
  almanac token add shipper --write app --subject CN=shipper,O=Acme`,
		Args: arguments(1, 1),
		RunE: a.does(a.tokenAdd),
	}
	for _, r := range access.Rights {
		if r.Everywhere {
			addFlags(add, switchFlag(string(r.Role), r.Short))
		} else {
			addFlags(add, namesFlag(string(r.Role), "`TOPICS`, or *: "+r.Short))
		}
	}
	addFlags(add,
		textFlag("expires", "`TIME` when it ends: a date such as 2027-11-01, or 90d from now (default: never)"),
		namesFlag("from", "`NETWORKS` that it may come from, such as 10.0.0.0/8 (default: any)"),
		fractionFlag("events-per-second", "`NUMBER` of events that it may send (default: no bound)"),
		namesFlag("sql-topics", "`TOPICS`: asks SQL of these alone, by an account of its own that a ClickHouse server has by `config clickhouse`"),
		textFlag("where", "`FILTER` of the rows that it reads, such as \"attributes.tenant = 'acme'\": = and IN, with AND and OR (default: all rows)"),
		textFlag("subject", "`SUBJECT` of the client's certificate, such as CN=shipper,O=Acme, in place of a secret (with tls_client_ca)"),
		textFlag("bytes-per-second", "`SIZE` that it may send, such as 10MiB (default: no bound)"),
	)
	ls := &cobra.Command{Use: "ls", Short: "List the tokens, without secrets", Args: arguments(0, 0), RunE: a.does(a.tokenList)}
	outputFlag(ls, asTable, asJSON, asNDJSON)
	rm := &cobra.Command{Use: "rm NAME", Short: "Remove a token", Args: arguments(1, 1), RunE: a.does(a.tokenRemove)}
	rotate := &cobra.Command{
		Use: "rotate NAME", Short: "Give a token a new secret, and print it, once", Args: arguments(1, 1), RunE: a.does(a.tokenRotate),
		Example: "  almanac token rotate api --overlap 24h\n  almanac token rotate api --expires 90d",
	}
	addFlags(rotate,
		orElse(textFlag("overlap", "`TIME` that the old secret stays valid"), "0s"),
		textFlag("expires", "`TIME` when the new secret ends: a date such as 2027-11-01, or 90d from now (default: when the old one was to end)"),
	)
	for _, c := range []*cobra.Command{add, ls, rm, rotate} {
		keyFlags(c.Flags(), "tokens_file")
	}
	return usageGroup(&cobra.Command{Use: "token", Short: "Tokens: who may do what over HTTP and gRPC"}, add, ls, rm, rotate)
}

func roleHelp() string {
	var out []string
	for _, r := range access.Rights {
		out = append(out, string(r.Role)+" "+r.Short)
	}
	return strings.Join(out, "; ") + "."
}

// tokensFile is the file that the settings name.
func tokensFile(cmd *cobra.Command) (string, error) {
	s, err := load(cmd)
	if err != nil {
		return "", err
	}
	return s.TokensFile, os.MkdirAll(filepath.Dir(s.TokensFile), 0o700)
}

func (a *app) tokenAdd(_ context.Context, cmd *cobra.Command, args []string) error {
	path, err := tokensFile(cmd)
	if err != nil {
		return err
	}
	secret, id := access.NewSecret()
	t := access.Token{Name: args[0], ID: id, Digest: access.DigestOf(secret)}
	f := cmd.Flags()
	if t.Subject, _ = f.GetString("subject"); t.Subject != "" {
		t.ID, t.Digest = "", access.Digest{}
	}
	for _, r := range access.Rights {
		if topics, err := f.GetStringSlice(string(r.Role)); err == nil && len(topics) > 0 {
			t.Grants = append(t.Grants, access.Grant{Role: r.Role, Topics: topics})
		}
		if has, err := f.GetBool(string(r.Role)); err == nil && has {
			t.Grants = append(t.Grants, access.Grant{Role: r.Role})
		}
	}
	if topics, _ := f.GetStringSlice("sql-topics"); len(topics) > 0 {
		if all, _ := f.GetBool(string(access.RoleSQL)); all {
			return usageError{errors.New("--sql is of every topic, and --sql-topics of some: pass one of them")}
		}
		t.Grants = append(t.Grants, access.Grant{Role: access.RoleSQL, Topics: topics})
	}
	if text, _ := f.GetString("expires"); text != "" {
		if t.Expires, err = ends(text, time.Now()); err != nil {
			return usageError{fmt.Errorf("--expires: %w", err)}
		}
	}
	networks, _ := f.GetStringSlice("from")
	for _, text := range networks {
		n, err := netip.ParsePrefix(text)
		if err != nil {
			return usageError{fmt.Errorf("--from: %q is not a network such as 10.0.0.0/8", text)}
		}
		t.From = append(t.From, n)
	}
	t.Rate.Events, _ = f.GetFloat64("events-per-second")
	if text, _ := f.GetString("bytes-per-second"); text != "" {
		n, ok := parseSize(text)
		if !ok {
			return usageError{fmt.Errorf("--bytes-per-second: %q is not a size such as 10MiB", text)}
		}
		t.Rate.Bytes = float64(n)
	}
	if t.Where, _ = f.GetString("where"); t.Where != "" {
		if err := filter.CheckLimit(t.Where); err != nil {
			return usageError{fmt.Errorf("--where: %w", err)}
		}
	}
	if err := t.Validate(); err != nil {
		return usageError{err}
	}
	err = keep.Change(path, func(all []access.Token) ([]access.Token, error) {
		if tokenOf(all, t.Name) >= 0 {
			return nil, usageError{fmt.Errorf("there is a token %q: `almanac token rotate %s` gives it a new secret, `almanac token rm %s` removes it", t.Name, t.Name, t.Name)}
		}
		if i := slices.IndexFunc(all, func(o access.Token) bool { return o.Subject != "" && o.Subject == t.Subject }); i >= 0 {
			return nil, usageError{fmt.Errorf("token %q has the subject %s: a certificate is of one token", all[i].Name, t.Subject)}
		}
		return append(all, t), nil
	})
	if err != nil {
		return err
	}
	if t.Subject != "" {
		a.note("%q is who shows a certificate of %s, signed by the CA that tls_client_ca names; it has no secret", t.Name, t.Subject)
		return nil
	}
	a.note("the secret of %q, shown once; %s has a digest of it", t.Name, path)
	_, err = fmt.Fprintln(a.stdout, secret)
	return err
}

// ends reads when a token ends: a date, a time, or a span from now. What is past would make a secret that is refused at once.
func ends(text string, now time.Time) (time.Time, error) {
	if d, ok := parseSpan(text); ok && d > 0 {
		return now.Add(d).UTC().Truncate(time.Second), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		at, err := time.Parse(layout, text)
		if err == nil && !at.After(now) {
			return at, fmt.Errorf("%q is past: the secret would be refused at once", text)
		}
		if err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a date such as 2027-11-01, nor a span such as 90d", text)
}

// tokenOf returns the index of the newest token of a name, or -1.
func tokenOf(all []access.Token, name string) int {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Name == name {
			return i
		}
	}
	return -1
}

func noToken(name string, all []access.Token) error {
	var names []string
	for i := range all {
		names = append(names, all[i].Name)
	}
	if len(names) == 0 {
		return usageError{fmt.Errorf("there is no token %q, nor another: `almanac token add` makes one", name)}
	}
	return usageError{fmt.Errorf("there is no token %q, but %s", name, strings.Join(slices.Compact(names), ", "))}
}

func (a *app) tokenRemove(_ context.Context, cmd *cobra.Command, args []string) error {
	path, err := tokensFile(cmd)
	if err != nil {
		return err
	}
	err = keep.Change(path, func(all []access.Token) ([]access.Token, error) {
		if tokenOf(all, args[0]) < 0 {
			return nil, noToken(args[0], all)
		}
		return slices.DeleteFunc(all, func(t access.Token) bool { return t.Name == args[0] }), nil
	})
	if err == nil {
		a.note("removed %q; what runs refuses it within two seconds", args[0])
	}
	return err
}
