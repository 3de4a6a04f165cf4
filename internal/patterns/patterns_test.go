package patterns

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// Expressions that people write compile, and those whose repetitions make many instructions of few bytes do not.
func TestCompile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  string
		large bool
	}{
		"a line of a server":          {`^(?P<host>\S+) \S+ (?P<user>\S+) \[(?P<time>[^\]]+)\] "(?P<method>[A-Z]{3,10}) (?P<path>\S+) HTTP/[0-9.]{1,3}" (?P<status>[0-9]{3})`, false},
		"a name":                      {`[a-z]{1,63}(\.[a-z]{1,63}){3}`, false},
		"a UUID":                      {`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`, false},
		"a long text":                 {`.{0,1000}`, false},
		"a long alternation":          {strings.Repeat("some-host.example|", 1000), false},
		"one repetition":              {`(?:abc){1000}`, true},
		"many of what may be nothing": {`(?P<a>` + strings.Repeat(`(?:.?){1000}`, 75) + `\x00)`, true},
		"nested":                      {`((a{10}){10}){10}.{1000}`, true},
		"at least":                    {strings.Repeat(`\w{1000,}`, 3), true},
		"classes":                     {strings.Repeat(`[^x]{900}`, 4), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if re, err := Compile(c.text); errors.Is(err, ErrLarge) != c.large || (re == nil) != c.large {
				t.Errorf("%v", err)
			}
		})
	}
	if _, err := Compile("("); err == nil || errors.Is(err, ErrLarge) {
		t.Errorf("what is not an expression: %v", err)
	}
}

// What is counted is not far below what regexp makes of the expression.
func TestRepeatedIsNearTheProgram(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`(?:.?){1000}`, `[a-z]{500}`, `(a|b){300}`, `(x{2,7}y){40}`, `(?:a*){700}`, `((((a))))`, `\pL{900}`, `(?i)k{800}`, `a{30,}`} {
		re, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		prog, err := syntax.Compile(re.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if counted := Repeated(text, syntax.Perl) + len(text); 3*counted < len(prog.Inst) {
			t.Errorf("%s: counted are %d instructions, and there are %d", text, counted, len(prog.Inst))
		}
	}
}

// A long text is matched as a short one is, and no further than its caller wants.
func TestFindInALongText(t *testing.T) {
	t.Parallel()
	long := slices.Concat(bytes.Repeat([]byte("é\xff."), longText/4), []byte("user=ann end"))
	if len(long) <= longText {
		t.Fatal("the text is not long")
	}
	for _, text := range []string{`user=(\w+) (x)?`, `^é`, `end$`, `\xff`, `nothing of it`, `(?s)^.*$`, `\.(u)`} {
		re := regexp.MustCompile(text)
		got, err := Find(re, long, func() error { return nil })
		if want := re.FindSubmatchIndex(long); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	enough, asked := errors.New("enough"), 0
	_, err := Find(regexp.MustCompile(`nothing`), long, func() error {
		if asked++; asked > 2 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || asked != 3 {
		t.Errorf("%v after %d questions", err, asked)
	}
}
