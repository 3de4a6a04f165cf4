package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query"
)

func (a *app) sqlCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sql [STATEMENT]",
		Short: "Ask ClickHouse in SQL, read-only",
		Long: `Ask ClickHouse in SQL, read-only and within limits. Each topic is a table of
its name, with the last day of it in TOPIC_recent; almanac_shards and
almanac_lag say what is stored of all topics. Without a statement, or with -, it
is read from stdin.

SQL sees what is stored in ClickHouse: an event a second or so after it was
accepted. So the statement first waits until all that the topics it names accepted
before it is stored, for as long as that goes on. When nothing is stored for --wait it
answers without the rest, says so, and exits 3. "almanac query" sees events at once.`,
		Annotations: shortAnswer.declared(),
		Example: `  almanac sql 'SELECT count(), uniqExact(id) FROM app'
  almanac sql -o csv 'SELECT ts, message FROM app ORDER BY ts DESC LIMIT 10'
  almanac sql -o parquet 'SELECT * FROM app' > app.parquet
  curl "$(almanac sql --print-dsn=curl)" -d 'SELECT count() FROM app_recent'`,
		Args: arguments(0, 1),
		RunE: a.does(a.sql),
	}
	outputFlag(cmd, asTable, asJSON, asNDJSON, asCSV, asParquet)
	format := flagOf(&operations.SQL, "format")
	format.Help += ", in place of -o"
	dsn := textFlag("print-dsn", "print the read-only account's address, with its password, for other clients: `http` (the default), native or curl")
	dsn.Bare = dsnHTTP
	addFlags(cmd, format, dsn,
		orElse(textFlag("max-time", "`TIME` the statement may take, 5m at most: the account allows no more"), "30s"),
		orElse(textFlag("max-memory", "`SIZE` the statement may use"), "2GiB"),
		orElse(amountFlag("max-rows", "`ROWS` the answer may have, 10,000,000 at most"), query.DefaultSQLRows),
	)
	flagsOf(cmd, &operations.Usage, "wait")
	return cmd
}

// clickhouseFormats are what -o means to ClickHouse. A table is drawn by the
// server, which knows the types.
var clickhouseFormats = map[string]string{
	asTable:  "PrettyCompactNoEscapesMonoBlock",
	asJSON:   "JSONEachRow",
	asNDJSON: "JSONEachRow",
	asCSV:    "CSVWithNames",
	// As ClickHouse makes it, byte for byte.
	asParquet: "Parquet",
}

// binaryFormat are the formats that would garble a terminal.
var binaryFormat = regexp.MustCompile(`(?i)^(Parquet|Arrow|ORC|Native|RowBinary|MsgPack|Avro|BSON|Npy|Protobuf|CapnProto)`)

func (a *app) sql(ctx context.Context, cmd *cobra.Command, args []string) error {
	if cmd.Flags().Changed("print-dsn") {
		return a.printDSN(cmd)
	}
	o := format(cmd, a.forEvents())
	req := query.SQLRequest{Format: clickhouseFormats[o]}
	if name, _ := cmd.Flags().GetString("format"); name != "" {
		req.Format, o = name, ""
	}
	if binaryFormat.MatchString(req.Format) && terminal(a.stdout) {
		return usageError{fmt.Errorf("%s is not for a terminal; send it into a file: almanac sql … > events.%s", req.Format, strings.ToLower(req.Format))}
	}
	var err error
	req.MaxRows, _ = cmd.Flags().GetUint64("max-rows")
	if req.MaxTime, req.MaxMemoryBytes, err = sqlLimits(cmd); err != nil {
		return err
	}
	if req.SQL, err = a.statement(ctx, args); err != nil {
		return err
	}
	return whenOpen(ctx, cmd, func(c *session, r *query.Reader) error {
		short, err := a.waitStored(ctx, cmd, r, req.SQL)
		if err != nil {
			return err
		}
		req.User, req.Password = c.readerUser, c.readerPassword
		body, err := r.SQL(ctx, req)
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }()
		switch o {
		case asJSON:
			err = asArray(a.stdout, body)
		case asTable:
			err = copyPrintable(a.stdout, body)
		default:
			_, err = io.Copy(a.stdout, body)
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("the answer is cut off: ClickHouse failed on the way, most often by a limit (--max-time, --max-memory, --max-rows): %w", err)
		}
		if err == nil && short {
			return errPartial
		}
		return err
	})
}

// printDSN prints where other clients find ClickHouse, and as whom.
func (a *app) printDSN(cmd *cobra.Command) error {
	s, err := load(cmd)
	if err != nil {
		return err
	}
	d, err := findEndpoints(s, bothServers)
	if err != nil {
		return err
	}
	kind, _ := cmd.Flags().GetString("print-dsn")
	dsn, err := readerDSN(d, kind)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.stdout, dsn)
	return err
}

// The forms of an address: clients take the database from the path, curl gives it
// to ClickHouse as it stands, and that takes it from the query.
const (
	dsnHTTP   = "http"
	dsnNative = "native"
	dsnCurl   = "curl"
)

// readerDSN is the read-only account's address.
func readerDSN(d endpoints, kind string) (string, error) {
	if d.readerUser == "" {
		return "", errors.New("this ClickHouse was not started by almanac, which knows no read-only account of it; make one, and give clients that")
	}
	u, err := url.Parse(d.clickhouse)
	if err != nil {
		return "", err
	}
	u.User = url.UserPassword(d.readerUser, d.readerPassword)
	switch kind {
	case dsnHTTP:
	case dsnNative:
		u.Scheme, u.Host = "clickhouse", d.clickhouseTCP
	case dsnCurl:
		u.RawQuery, u.Path = url.Values{"database": {strings.Trim(u.Path, "/")}}.Encode(), "/"
	default:
		return "", usageError{fmt.Errorf("--print-dsn=%s: it is %s, %s or %s", kind, dsnHTTP, dsnNative, dsnCurl)}
	}
	return u.String(), nil
}

func sqlLimits(cmd *cobra.Command) (time.Duration, int64, error) {
	text, _ := cmd.Flags().GetString("max-time")
	limit, ok := parseSpan(text)
	if !ok || limit < time.Second {
		return 0, 0, usageError{fmt.Errorf("--max-time %q is not a length of time of 1s or more, such as 30s", text)}
	}
	text, _ = cmd.Flags().GetString("max-memory")
	memory, ok := parseSize(text)
	if !ok || memory <= 0 {
		return 0, 0, usageError{fmt.Errorf("--max-memory %q is not a size, such as 2GiB", text)}
	}
	return limit, memory, nil
}

// statement is the SQL of the command line or of stdin.
func (a *app) statement(ctx context.Context, args []string) (string, error) {
	if len(args) == 1 && args[0] != "-" {
		return args[0], nil
	}
	if len(args) == 0 && terminal(a.stdin) {
		return "", usageError{errors.New("no statement: give it in quotes, or on stdin")}
	}
	text, err := io.ReadAll(io.LimitReader(a.input(ctx), maxStatement))
	return strings.TrimSpace(string(text)), err
}

// maxStatement is above what ClickHouse parses (256 KiB by default).
const maxStatement = 1 << 20

// asArray makes one JSON document of one object a line.
func asArray(w io.Writer, lines io.Reader) error {
	out := bufio.NewWriter(w)
	in := bufio.NewReaderSize(lines, 64<<10)
	sep := "[\n"
	for {
		line, err := in.ReadString('\n')
		if line = strings.TrimRight(line, "\n"); line != "" {
			_, _ = out.WriteString(sep + line)
			sep = ",\n"
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if sep == "[\n" {
		_, _ = out.WriteString("[")
	}
	_, _ = out.WriteString("\n]\n")
	return out.Flush()
}

// waitStored waits for what a statement may read to be stored, and says when some of
// it is not.
func (a *app) waitStored(ctx context.Context, cmd *cobra.Command, r *query.Reader, sql string) (short bool, err error) {
	stall, err := waitFlag(cmd)
	if err != nil || stall <= 0 {
		return false, err
	}
	all, err := r.TopicNames(ctx)
	if err != nil {
		return false, err
	}
	return a.waitTopics(ctx, r, query.TopicsNamed(sql, all), stall)
}
