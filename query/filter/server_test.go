package filter

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// serverRows are the events the filters below run over; n is the row's number.
const serverRows = `
SELECT * FROM values('n UInt8, ts DateTime64(9,\'UTC\'), id UUID, level LowCardinality(String), user_id String, message String,
	attributes Map(LowCardinality(String), String), month UInt32, shard UInt64, pos UInt64,
	duration_ms Float64, status Int64, cached Bool, endpoint LowCardinality(String)',
(1, '2026-11-05 10:00:00.000000001', '0193a1b2-0000-7000-8000-000000000001', 'error', 'u-7', 'a\tb', map('n', '7', 'k', 'x', 'w', '9007199254740993', 'w#2', '5'), 202611, 12345, 1, 1.5, 200, true, '/a'),
(2, '2026-11-05 10:00:00.000000002', '0193a1b2-0000-7000-8000-000000000002', 'info', 'O\'Neil', 'back\\slash', map('n', '10', 'w', '+18446744073709551615'), 202611, 12345, 2, 2.5, 404, false, '/b'),
(3, '2026-12-01 00:00:00', '0193a1b2-0000-7000-8000-000000000003', 'info', '\'); DROP TABLE x --', 'line\nfeed 12 ms', map('n', 'none', 'w', '-9007199254740993', 'f', '1.5', 'any \'key', '\\N'), 202612, 18446744073709551615, 3, -1, 500, false, ''),
(4, '1970-01-01 00:00:01', '0193a1b2-0000-7000-8000-000000000004', '', '', '\0\r\b\f', map('w', '99999999999999999999999999999999999'), 197001, 0, 4, 0, 0, false, ''))`

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// The conditions and the encoding of parameters hold on the real engine.
func TestOnServer(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutNATS())
	addr := strings.Replace(srv.ClickHouseHTTP, "://", "://"+url.UserPassword(srv.User, srv.Password).String()+"@", 1)
	for _, c := range []struct{ src, want string }{
		{"", "1234"},
		{"level = 'error'", "1"},
		{"level != 'error'", "234"},
		{"level IN ('error', '')", "14"},
		{"user_id = 'O\\'Neil'", "2"},
		{"user_id IN ('O\\'Neil', '\\'); DROP TABLE x --')", "23"},
		{"user_id NOT IN ('u-7')", "234"},
		{"message = 'a\\tb'", "1"},
		{"message IN ('a\\tb', 'back\\\\slash', 'line\\nfeed 12 ms')", "123"},
		{"message IN ('back\\slash')", "2"},
		{"message contains '\\\\'", "2"},
		{"message contains '\\n'", "3"},
		{"message = '\\0\\r\b\f'", "4"},
		{"message IN ('\\0\\r\b\f')", "4"},
		{`message matches '\d+ ms$'`, "3"},
		{`message matches '(?i)^LINE.FEED'`, "3"},
		{"attributes.n = 7", "1"},
		{"attributes.n != 7", "234"},
		{"attributes.n > 8", "2"},
		{"NOT attributes.n > 8", "134"},
		{"attributes.n > '8'", "3"},
		{"attributes.n < '8'", "124"},
		{"attributes.n IN (7, 10)", "12"},
		{"attributes.w > 9007199254740992", "124"},
		{"attributes.w > 9007199254740993", "24"},
		{"attributes.w >= 9007199254740993", "124"},
		{"attributes.w < 9007199254740993", "3"},
		{"attributes.w <= 9007199254740992.5", "3"},
		{"attributes.w > 9007199254740992.5", "124"},
		{"attributes.w > 99999999999999999999999999999999", "4"},
		{"attributes.w < 1e300", "1234"},
		{"attributes.w > -1e300 AND NOT attributes.w > 1e76", "1234"},
		{"attributes.w < 18446744073709551616 AND attributes.w > 18446744073709551614", "2"},
		{"attributes.w#2 > 4", "1"},
		{"attributes.w#2 = 5", "1"},
		{"attributes.f < 1e-320 AND attributes.f > 0", ""},
		{"attributes.f > 1.49999 AND attributes.f < 1e-1000000000000000000000", ""},
		{"attributes.f > 1.49999 AND attributes.f >= 0e1000000000000000000000", "3"},
		{"attributes.n NOT IN (7, 10)", "34"},
		{"attributes['any \\'key'] = '\\\\N'", "3"},
		{"exists attributes['any \\'key']", "3"},
		{"exists attributes.n AND NOT exists attributes.k", "23"},
		{"exists user_id", "123"},
		{"exists level", "123"},
		{"ts = '2026-11-05T10:00:00.000000001Z'", "1"},
		{"ts > '2026-11-05T10:00:00.000000001Z' AND ts < '2026-12-01'", "2"},
		{"ts IN ('2026-12-01', '2026-11-05T11:00:00.000000002+01:00')", "23"},
		{"ts < -2w", "4"},
		{"id = '0193a1b2-0000-7000-8000-000000000002'", "2"},
		{"id IN ('0193a1b2-0000-7000-8000-000000000002', '0193A1B2-0000-7000-8000-000000000003')", "23"},
		{"month = '2026-11'", "12"},
		{"month > '2026-11'", "3"},
		{"month IN ('2026-12', '1970-01')", "34"},
		{"shard = 'ffffffffffffffff'", "3"},
		{"shard IN ('ffffffffffffffff', '0000000000003039')", "123"},
		{"pos >= 3", "34"},
		{"pos IN (1, 2)", "12"},
		{"duration_ms >= 1.5", "12"},
		{"duration_ms = -1", "3"},
		{"duration_ms IN (+1.5, 250E-2)", "12"},
		{"duration_ms > 1e-300 AND duration_ms < 1e21 AND attributes.n < +1e1", "1"},
		{"duration_ms IN (1.5, -1e0)", "13"},
		{"status NOT IN (200, 404)", "34"},
		{"cached = true", "1"},
		{"cached IN (true)", "1"},
		{"cached != true", "234"},
		{"endpoint = '/a' OR (status = 500 AND NOT cached = true)", "13"},
	} {
		e, err := ParseAt(c.src, testTopic(), testNow)
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		where, params := e.SQL()
		q := url.Values{}
		for k, v := range params {
			q.Set("param_"+k, v)
		}
		got := ask(t, addr+"/?"+q.Encode(), "SELECT n FROM ("+serverRows+") WHERE "+where+" ORDER BY n")
		if diff := cmp.Diff(c.want, strings.ReplaceAll(got, "\n", "")); diff != "" {
			t.Errorf("%s\n%s\n(-want +got) %s", c.src, where, diff)
		}
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
