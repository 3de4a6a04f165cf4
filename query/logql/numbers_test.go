package logql

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/query/filter"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// TestNumbersAreReadAlike holds that a comparison with a number selects the same events where ClickHouse makes it and where a stage does:
// the same query would else have other lines once a stage stands before it.
func TestNumbersAreReadAlike(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutNATS())
	addr := strings.Replace(srv.ClickHouseHTTP, "://", "://"+url.UserPassword(srv.User, srv.Password).String()+"@", 1)
	f := fieldsOf(&topicApp, []string{"v"})
	for _, text := range []string{
		"5", "+5", "-5", "--5", "+-5", "5.", ".5", "-.5", "+.5", ".", "-", "", "007", "-0", "0.1", "1e3", "1E3", "1e+3", "1e-3", "+1e5", "1e", "1e 3", "1e5.5", "1e400", "-1e400", "1e-400",
		"1.7976931348623159e308", "4.9e-324", "2e-324", "inf", "Inf", "-inf", "+INF", "infinity", "-Infinity", "nan", "NaN", "-nan", " 5", "5 ", "\t5", "5\n", "0x1F", "0x1p4", "0b11", "0o17", "1_000", "1,5", "5ms", "５",
		"infi", "in", "inf5", "nanx", "9007199254740993", "-9007199254740993", "123456789012345678901234567890",
	} {
		t.Run(text, func(t *testing.T) {
			e := &Entry{Structured: map[string]string{"v": text}}
			for _, src := range []string{"v = 5", "v != 5", "v > 4", "v < 4", "v >= -5", "v <= 0", "v > 9007199254740992", "v < 1.5"} {
				parsed, err := Parse("{} | " + src)
				if err != nil {
					t.Fatal(err)
				}
				where, err := filter.Parse(parsed.Log.selection(f).where, &topicApp)
				if err != nil {
					t.Fatal(err)
				}
				cond, params := where.SQL()
				q := url.Values{}
				for name, v := range params {
					q.Set("param_"+name, v)
				}
				server := ask(t, addr+"/?"+q.Encode(), "SELECT toBool("+cond+") FROM (SELECT map('v', unhex('"+hex.EncodeToString([]byte(text))+"')) AS attributes)")
				if stage := strconv.FormatBool(parsed.Log.Stages[0].apply(e)); stage != strings.TrimSpace(server) {
					t.Errorf("%s of %q: ClickHouse says %s, a stage %s", src, text, server, stage)
				}
			}
		})
	}
}

func ask(t *testing.T, addr, sql string) string {
	t.Helper()
	resp, err := http.Post(addr, "text/plain", strings.NewReader(sql))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
