package main

import (
	"strings"
	"testing"
	"time"
)

// Exit codes and words of calls that need no server.
func TestUsage(t *testing.T) {
	t.Parallel()
	for call, c := range map[string]struct {
		code int
		says string
	}{
		"":                                     {exitOK, ""},
		"--help":                               {exitOK, ""},
		"completion bash":                      {exitOK, ""},
		"topics":                               {exitOK, ""},
		"quer":                                 {exitUsage, "did you mean query?"},
		"topics aply":                          {exitUsage, "did you mean apply?"},
		"up --prots auto":                      {exitUsage, "did you mean --ports?"},
		"up extra":                             {exitUsage, "see almanac up --help"},
		"send":                                 {exitUsage, "see almanac send --help"},
		"query app --limit many":               {exitUsage, "--limit"},
		"query app --limit -1":                 {exitUsage, "--limit"},
		"query app --from yesterday":           {exitUsage, "-15m"},
		"query app --order up":                 {exitUsage, "desc"},
		"query app -o yaml":                    {exitUsage, "table, json, ndjson"},
		"query app -o jsno":                    {exitUsage, "did you mean json?"},
		"send Bad":                             {exitUsage, "[a-z]"},
		"send app --format xml":                {exitUsage, "ndjson"},
		"send app --multiline (":               {exitUsage, "--multiline"},
		"send app --tz Mars":                   {exitUsage, "--tz"},
		"send app --timeout soon":              {exitUsage, "--timeout"},
		"sql --max-time 0s x":                  {exitUsage, "--max-time"},
		"sql --max-memory much x":              {exitUsage, "--max-memory"},
		"dead show x":                          {exitUsage, "almanac dead ls"},
		"topics apply":                         {exitUsage, "a topic or a file"},
		"topics apply app -f x":                {exitUsage, "a topic or a file"},
		"query app":                            {exitFailed, "almanac up --data"},
		"send app":                             {exitFailed, "almanac up --data"},
		"verify":                               {exitFailed, "no Almanac is running"},
		"repair":                               {exitFailed, "no Almanac is running"},
		"repair -o xml":                        {exitUsage, "table, json"},
		"repair a b":                           {exitUsage, "takes 1 argument at most"},
		"replay":                               {exitUsage, "almanac replay TOPIC, or --resume JOB"},
		"replay app --resume x":                {exitUsage, "the job knows it"},
		"replay --resume x --into -":           {exitUsage, "--into cannot be given with --resume"},
		"replay app --speed fast":              {exitUsage, "10x"},
		"replay app --rate -1":                 {exitUsage, "--rate"},
		"replay app --order id":                {exitUsage, `"id" is not one of position or time`},
		"replay app --from-pos 0":              {exitUsage, "count from 1"},
		"replay app -o xml":                    {exitUsage, "table, json, ndjson"},
		"replay app":                           {exitFailed, "no Almanac is running"},
		"rebuild --yes":                        {exitUsage, "needs TOPIC"},
		"rebuild app":                          {exitUsage, "--dry-run, then give --yes"},
		"rebuild app --dry-run --abort":        {exitUsage, "abort dry-run"},
		"rebuild app --yes -o xml":             {exitUsage, "table, json"},
		"rebuild app --dry-run":                {exitFailed, "no Almanac is running"},
		"dead retry":                           {exitUsage, "needs TOPIC"},
		"dead retry app --seq x":               {exitUsage, "almanac dead ls"},
		"dead retry app":                       {exitFailed, "no Almanac is running"},
		"dead drop app":                        {exitUsage, "--dry-run, then give --yes"},
		"dead drop app --yes --seq 0":          {exitUsage, "--seq"},
		"dead drop app --yes --seq 5":          {exitUsage, "give NUMBER@TIME"},
		"dead show 5@yesterday":                {exitUsage, "almanac dead ls"},
		"dead drop app --dry-run":              {exitFailed, "no Almanac is running"},
		"send app missing.log":                 {exitFailed, "missing.log"},
		"doctor":                               {exitFailed, "no Almanac is running"},
		"send app --nats nats://127.0.0.1:1":   {exitFailed, "127.0.0.1:1"},
		"up --http 0.0.0.0:0 --ports auto":     {exitConfig, "loopback"},
		"up --http nowhere":                    {exitConfig, "host:port"},
		"sink --nats nats://x --clickhouse x":  {exitConfig, "DSN"},
		"topics show app -o table":             {exitUsage, "yaml, json"},
		"bench --events 0":                     {exitUsage, "--events"},
		"bench --only 1000":                    {exitUsage, "belongs to --load"},
		"bench --load --only many":             {exitUsage, "RATExTOPICS"},
		"bench more":                           {exitUsage, "unknown command"},
		"query app --nats nats://127.0.0.1:1 ": {exitUsage, "give --clickhouse too"},
		"bench --nats nats://127.0.0.1:1":      {exitUsage, "bench starts servers of its own"},
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			r := newBox(t).run("", strings.Fields(call)...)
			if r.code != c.code {
				t.Errorf("exit %d, want %d\n%s", r.code, c.code, r.err)
			}
			contains(t, r.out+r.err, c.says)
			if c.code != exitOK && c.code != exitFailed && r.out != "" {
				t.Errorf("stdout is for data, it has:\n%s", r.out)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	v := decoded[versions](newBox(t), "version", "-o", "json")
	if v.Go == "" || v.NATSServer == "" || v.Version == "" {
		t.Errorf("%+v lacks something", v)
	}
}

func TestParseTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"":                          {},
		"now":                       now,
		"-15m":                      now.Add(-15 * time.Minute),
		"-1h30m":                    now.Add(-90 * time.Minute),
		"-7d":                       now.AddDate(0, 0, -7),
		"-2w":                       now.AddDate(0, 0, -14),
		"-1.5h":                     now.Add(-90 * time.Minute),
		"2026-11-20T10:00:00Z":      now.Add(-2 * time.Hour),
		"2026-11-20T10:00:00.5Z":    now.Add(-2*time.Hour + 500*time.Millisecond),
		"2026-11-20T11:00:00+01:00": now.Add(-2 * time.Hour),
		"2026-11-20T10:00:00":       now.Add(-2 * time.Hour),
		"2026-11-20 10:00:00":       now.Add(-2 * time.Hour),
		"2026-11-20":                now.Add(-12 * time.Hour),
	} {
		if got, err := parseTime(text, now); err != nil || !got.Equal(want) {
			t.Errorf("parseTime(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	if got, err := parseEnd("now", now); err != nil || !got.After(now) || got.Sub(now) > time.Millisecond {
		t.Errorf("a range to now ends at %v, %v", got, err)
	}
	for _, text := range []string{"15m", "-", "-m", "-15", "-15x", "yesterday", "2026-13-01", "10:00", "-99999999999d"} {
		if got, err := parseTime(text, now); err == nil {
			t.Errorf("parseTime(%q) = %v, want an error", text, got)
		}
	}
}

func TestParseSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"0": 0, "10": 10, "64MiB": 64 << 20, "2g": 2 << 30, "1.5 KiB": 1536, "2GB": 2e9} {
		if got, ok := parseSize(text); !ok || got != want {
			t.Errorf("parseSize(%q) = %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "x", "-1", "1XB", "9999999999TiB"} {
		if got, ok := parseSize(text); ok {
			t.Errorf("parseSize(%q) = %d, want a refusal", text, got)
		}
	}
}

// A time that is past is not told as one that will come.
func TestGoneBy(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	if got := goneBy(now.Add(time.Hour), now); got != "gone by 2026-11-20T13:00:00Z" {
		t.Error(got)
	}
	if got := goneBy(now.Add(-time.Hour), now); !strings.HasPrefix(got, "due to go since 2026-11-20T11:00:00Z") {
		t.Error(got)
	}
}

func TestSuggestionOfNothingNear(t *testing.T) {
	t.Parallel()
	if got := suggestion("zebra", keyNames(), ""); got != "" {
		t.Errorf("zebra is near to nothing, but got %q", got)
	}
}

// Events were written by others: they must not steer the terminal.
func TestPrintable(t *testing.T) {
	t.Parallel()
	if got, want := printable("a\x1b[31m\tb\nc\u009bd\x00\r\n"), "a·[31m b⏎c·d·"; got != want {
		t.Errorf("printable = %q, want %q", got, want)
	}
}
