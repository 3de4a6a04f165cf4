package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/access/keep"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/schemas"
)

func (a *app) configCommand() *cobra.Command {
	check := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check the settings file and the environment; exits 78 when they cannot be used",
		Long: `Check the settings file and the environment, and try what a start would do first:
take the ports, read certificates, keys and tokens, look at the directories and at
the room on the disk. Each fault is named. It leaves nothing, and may run beside the
process of these settings.`,
		Example: `  almanac config check /etc/almanac/almanac.yaml && systemctl reload almanac`,
		Args:    arguments(0, 1),
		RunE:    a.does(a.configCheck),
	}
	show := &cobra.Command{
		Use:   "show",
		Short: "Show the effective settings and where each comes from",
		Args:  arguments(0, 0),
		RunE:  a.does(a.configShow),
	}
	outputFlag(show, asTable, asJSON, asNDJSON)
	natsUsers := &cobra.Command{
		Use:   "nats",
		Short: "Print the users of NATS for the configuration of a server elsewhere",
		Long: `Print the users of NATS, with what each may publish and hear, as a block of the
configuration of a NATS server. The server reads their passwords from its own
environment: ` + access.NATSPasswordKey(access.UserRouter) + ` is the router's. Each part then names its user
in ALMANAC_NATS. First run ` + "`almanac setup`" + ` as the user setup: only it and the
operator may make streams. SECURITY.md has the users as a table.

With --server it prints the rest of what such a server needs: bounds that fit what the
parts ask for, and a store in a directory of the server that is on disk before it is
acknowledged. Listeners, TLS and routes are yours.

With --print-url it prints the address of the up on the data directory instead, with
the password of a user: the operator, or the one that --user names. Beyond loopback it
is the address for other machines, whose programs trust the certificate's CA.`,
		Example: `  ALMANAC_NATS=$(almanac config nats --print-url) ./my-program
  almanac config nats --print-url --user producer   # for a program that only sends
  almanac config nats > users.conf   # and: include users.conf
  almanac config nats --server /var/lib/nats > server.conf
  ALMANAC_NATS=nats://setup:…@nats-1:4222 almanac setup
  ALMANAC_NATS=nats://router:…@nats-1:4222 almanac router`,
		Args: arguments(0, 0),
		RunE: a.does(func(_ context.Context, cmd *cobra.Command, _ []string) error {
			s, err := load(cmd) // a wrong flag is one here too
			if err != nil {
				return err
			}
			text := access.NATSConfig()
			if store, _ := cmd.Flags().GetString("server"); store != "" {
				text = embedded.NATSServerConfig(store)
			}
			user, _ := cmd.Flags().GetString("user")
			if url, _ := cmd.Flags().GetBool("print-url"); url {
				if text, err = natsLogin(s.Data, user); err != nil {
					return err
				}
				text += "\n"
			} else if user != "" {
				return usageError{errors.New("--user goes with --print-url")}
			}
			_, err = fmt.Fprint(a.stdout, text)
			return err
		}),
	}
	addFlags(natsUsers, textFlag("server", "print what the server needs beside users; its streams are in this directory"), switchFlag("print-url", "print the address of the NATS of the up on the data directory, with the password of a user"),
		textFlag("user", "the user of --print-url, such as producer; by default operator"))
	clickHouseUsers := &cobra.Command{
		Use:   "clickhouse",
		Short: "Print the accounts of ClickHouse for the configuration of a server elsewhere",
		Long: `Print the accounts of ClickHouse, with what each may do and its limits, as a file
for the directory users.d of a ClickHouse server. The server reads their passwords
from its own environment: ` + access.ClickHousePasswordKey(access.UserSink) + ` is the sink's. Each part then
names its account in ALMANAC_CLICKHOUSE. SECURITY.md has the accounts as a table.
Tokens that ask SQL of some topics have accounts too, whose passwords are made of
that in clickhouse_reader: print the file again when such a token was made.`,
		Example: `  almanac config clickhouse > /etc/clickhouse-server/users.d/almanac.xml
  ALMANAC_CLICKHOUSE=https://sink:…@clickhouse-1:8443/almanac almanac sink`,
		Args: arguments(0, 0),
		RunE: a.does(func(_ context.Context, cmd *cobra.Command, _ []string) error {
			s, err := load(cmd) // a wrong flag is one here too
			if err != nil {
				return err
			}
			more, err := sqlAccounts(s)
			if err != nil {
				return err
			}
			database, _ := cmd.Flags().GetString("database")
			database = cmp.Or(database, schemas.DefaultDatabase)
			if !embedded.ValidDatabase(database) {
				return usageError{fmt.Errorf("--database %q: expected letters, digits and _, at most 63", database)}
			}
			_, err = fmt.Fprint(a.stdout, access.ClickHouseConfig(database, s.SQLPassword, more))
			return err
		}),
	}
	addFlags(clickHouseUsers, textFlag("database", "the database of Almanac's tables, by default "+schemas.DefaultDatabase))
	// What up takes, so that its flags can be tried here.
	for _, c := range []*cobra.Command{check, show} {
		keyFlags(c.Flags(), shipperKeys...)
		keyFlags(c.Flags(), timerKeys...)
		keyFlags(c.Flags(), upKeys...)
		keyFlags(c.Flags(), drainKeys...)
	}
	return usageGroup(&cobra.Command{
		Use:   "config",
		Short: "Check and show the settings",
		Long: `Check and show the settings. Each has one name: log_level in the file,
ALMANAC_LOG_LEVEL in the environment, --log-level as a flag. A flag wins over the
environment, the environment over the file, the file over the default. The file
is the first of: ` + strings.Join(configPaths(), ", ") + `.`,
	}, check, show, natsUsers, clickHouseUsers)
}

// sqlAccounts are those of the tokens in the settings that ask SQL of some topics.
func sqlAccounts(s *settings) ([]access.ClickHouseUser, error) {
	tokens, err := keep.ReadFile(s.TokensFile)
	if err != nil {
		return nil, configError{err}
	}
	text, err := access.Parse([]byte(s.Tokens))
	if err != nil {
		return nil, configError{fmt.Errorf("the tokens of the environment: %w", err)}
	}
	all := access.SQLAccounts(append(tokens, text...))
	if len(all) > 0 && s.SQLPassword == "" {
		return nil, configError{errors.New("tokens ask SQL of some topics, and clickhouse_reader is not set: the passwords of their accounts are made of it")}
	}
	return all, nil
}

func (a *app) configCheck(ctx context.Context, cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		if err := cmd.Flags().Set("config", args[0]); err != nil {
			return err
		}
	}
	s, err := load(cmd)
	if err != nil {
		return err
	}
	if err := errors.Join(checkEnvironment(os.Environ(), true), s.check()); err != nil {
		return configError{err}
	}
	tried := rehearse(ctx, s)
	if tried.alive != "" {
		a.note("%s runs by these settings: that it has its ports, which is right", tried.alive)
	}
	for _, w := range tried.warnings {
		a.note("warning: %s", w)
	}
	if err := errors.Join(append(tried.faults, a.checkStore(ctx, s))...); err != nil {
		return configError{err}
	}
	for i := range s.TimersAllowCIDRs {
		if r := &s.TimersAllowCIDRs[i]; r.NoPort() {
			a.note("timers_allow_cidrs: %s opens the ports 80 and 443; name others after it, such as %s:9000", r, r)
		}
	}
	if s.File == "" {
		a.note("no settings file; environment and defaults are good")
		return nil
	}
	a.note("%s is good: %s", s.File, plural(len(s.Topics), "topic"))
	return nil
}

// check tries what load only takes over as text.
func (s *settings) check() error {
	if !isURL(s.NATS) {
		if _, _, err := listenAddress(s.NATS, 0); err != nil {
			return err
		}
	}
	for _, address := range []string{s.HTTP, s.Elastic, s.SyslogTCP, s.SyslogTLS, s.SyslogUDP} {
		if address == settingOff {
			continue
		}
		if _, _, err := listenAddress(address, 0); err != nil {
			return err
		}
	}
	if s.ClickHouse != "" {
		if _, err := httpDSN(s.ClickHouse); err != nil {
			return err
		}
	}
	return nil
}

// setting is one effective value.
type setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

func (a *app) configShow(_ context.Context, cmd *cobra.Command, _ []string) error {
	s, err := load(cmd)
	if err != nil {
		return err
	}
	rows := make([]setting, 0, len(keys)+1)
	for i := range keys {
		v := s.values[keys[i].name]
		rows = append(rows, setting{keys[i].name, keys[i].shown(v.text), v.origin})
	}
	names := make([]string, len(s.Topics))
	for i, t := range s.Topics {
		names[i] = t.Name
	}
	origin := "default"
	if len(names) > 0 {
		origin = s.File
	}
	rows = append(rows, setting{topicsKey, strings.Join(names, ", "), origin})
	return printRows(a, cmd, rows, func() table.Writer {
		t := newTable("key", "value", "origin")
		for _, r := range rows {
			t.AppendRow(table.Row{r.Key, r.Value, r.Origin})
		}
		return t
	})
}
