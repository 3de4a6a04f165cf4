package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/gateway/console"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/privacy"
)

// ready says, on stderr, where everything is and what is promised: for people as
// a block, in JSON logs as one line.
func (n *node) ready(w io.Writer, took time.Duration) {
	took = took.Round(10 * time.Millisecond)
	promise := "an event is acknowledged once it is on disk (fsync)"
	if n.servers.NATS == nil {
		promise = "an event is acknowledged as the NATS server at " + privacy.MaskedURL(n.s.NATS) + " is set up to"
	}
	httpURL, page, link := "off", "off", ""
	if n.inputs.http != nil {
		httpURL = n.inputs.http.url()
		page = httpURL + console.Path
		link = pageLink(page, filepath.Join(n.s.Data, embedded.LocalTokenName))
	}
	e := n.servers.ClickHouse
	if !n.s.textLogs(w) {
		topics := map[string]string{}
		for _, t := range n.topics {
			topics[t.Name] = kept(t) + private(t)
		}
		n.log.Info().Str("data", n.dir.Path()).Str("nats", privacy.MaskedURL(n.servers.natsURL())).
			Str("clickhouse_http", e.HTTPURL()).Str("clickhouse_tcp", e.TCPAddr()).Str("http", httpURL).Str("page", page).Str("page_link", link).Str("otlp", n.inputs.otlp.text()).
			Str("engine", e.Version()).Interface("topics", topics).Str("promise", promise).Dur("took", took).Msg("ready")
		return
	}
	nats := privacy.MaskedURL(n.servers.natsURL())
	if n.servers.NATS != nil {
		nats += "  (embedded " + server.VERSION + ")"
	}
	clickhouse := e.HTTPURL()
	if e.TCPAddr() != "" {
		clickhouse += ", native " + e.TCPAddr()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Almanac is ready after %s.\n", took)
	block := [][2]string{
		{"data", n.dir.Path()},
		{"NATS", nats},
		{"ClickHouse", clickhouse + "  (" + string(e.Engine().Kind) + " " + e.Version() + ", database " + e.Database() + ")"},
		{"HTTP", httpURL},
		{"page", page},
	}
	if link != "" {
		block = append(block, [2]string{"", "with every right, by the local token: " + link})
	}
	block = append(block, [2]string{"OTLP", n.inputs.otlp.text()})
	block = append(block, n.inputs.shippers.lines()...)
	for _, line := range append(block, [2]string{"promise", promise}) {
		fmt.Fprintf(&b, "  %-11s %s\n", line[0], line[1])
	}
	if e.ReaderPassword() != "" {
		fmt.Fprintf(&b, "  %-11s read-only as %s: almanac sql --print-dsn\n", "SQL", embedded.UserReader)
	}
	for i, t := range n.topics {
		word := ""
		if i == 0 {
			word = "topics"
		}
		fmt.Fprintf(&b, "  %-11s %s: %s, %d lanes, a shard to %s%s\n", word, t.Name, kept(t), t.Lanes, rotation(t.Rotate), private(t))
	}
	data := ""
	if n.s.Data != defaultData() {
		data = " --data " + n.s.Data
	}
	fmt.Fprintf(&b, "  %-11s echo hello | almanac send app%s\n", "try", data)
	_, _ = io.WriteString(w, b.String())
}

// pageLink is the command that prints the address of the page with the local token, which itself is in no log.
func pageLink(page, tokenFile string) string {
	return `echo "` + page + `#token=$(cat '` + strings.ReplaceAll(tokenFile, "'", `'\''`) + `')"`
}

// private is a topic's privacy rules, in words.
func private(t schemas.Topic) string {
	if len(t.PII) == 0 {
		return ""
	}
	rules := make([]string, len(t.PII))
	for i, p := range t.PII {
		rules[i] = p.String()
	}
	return "; pii " + strings.Join(rules, " ")
}

// rotation is when a shard is full, in words.
func rotation(r schemas.Rotation) string {
	var parts []string
	if r.Rows > 0 {
		parts = append(parts, humanCount(r.Rows)+" rows")
	}
	if r.Bytes > 0 {
		parts = append(parts, schemas.FormatBytes(float64(r.Bytes)))
	}
	if r.Span > 0 {
		parts = append(parts, r.Span.String())
	}
	if len(parts) == 0 {
		return "the month's end"
	}
	return strings.Join(parts, " or ")
}
