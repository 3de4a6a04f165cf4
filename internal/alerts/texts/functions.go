package texts

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"text/template"

	"github.com/prometheus/common/helpers/templates"
)

// functions of templates: Go's own stand beside them, but for those that are withheld.
var functions = template.FuncMap{
	"print": withheld, "println": withheld, "html": withheld, "js": withheld, "urlquery": withheld,
	"printf": printf, "toUpper": strings.ToUpper, "toLower": strings.ToLower, "stripPort": stripPort, "stripDomain": stripDomain,
	"humanize": humanize, "humanize1024": humanize1024, "humanizePercentage": humanizePercentage,
	"humanizeDuration": templates.HumanizeDuration, "humanizeTimestamp": templates.HumanizeTimestamp,
	"title": title, "match": match, "reReplaceAll": replaceAll,
}

var errWithheld = errors.New("print, println, html, js and urlquery are not built in templates")

// withheld stands for functions that every template has and whose results nothing bounds.
func withheld(...any) (string, error) { return "", errWithheld }

// wide matches a width or a precision that makes much text of little.
var wide = regexp.MustCompile(`%[-+# 0]*(\d{3,}|\d*\.\d{3,}|[\d.]*[*[])`)

func printf(format string, args ...any) (string, error) {
	if wide.MatchString(format) {
		return "", fmt.Errorf("printf: %q: expected widths and precisions below 100", format)
	}
	size := len(format) + 100*strings.Count(format, "%")
	for _, a := range args {
		if text, ok := a.(string); ok {
			size += 4 * len(text) // %q makes up to so much of it
		}
	}
	if size > 4*maxFilled {
		return "", errFilled
	}
	return fmt.Sprintf(format, args...), nil
}

// Prefixes of what is larger and smaller than one.
var (
	larger  = []string{"", "k", "M", "G", "T", "P", "E", "Z", "Y"}
	smaller = []string{"", "m", "u", "n", "p", "f", "a", "z", "y"}
	binary  = []string{"", "ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi"}
)

// scaled divides a number by base until it is below it, or multiplies it until it is one.
func scaled(v, base float64, up, down []string) string {
	n := 0
	if math.IsNaN(v) || math.IsInf(v, 0) || v == 0 {
		return fmt.Sprintf("%.4g", v)
	}
	if math.Abs(v) >= 1 {
		for math.Abs(v) >= base && n < len(up)-1 {
			v, n = v/base, n+1
		}
		return fmt.Sprintf("%.4g%s", v, up[n])
	}
	for math.Abs(v) < 1 && n < len(down)-1 {
		v, n = v*base, n+1
	}
	return fmt.Sprintf("%.4g%s", v, down[n])
}

func humanize(of any) (string, error) {
	v, err := templates.ConvertToFloat(of)
	return scaled(v, 1000, larger, smaller), err
}

func humanize1024(of any) (string, error) {
	v, err := templates.ConvertToFloat(of)
	return scaled(v, 1024, binary, binary[:1]), err
}

func humanizePercentage(of any) (string, error) {
	v, err := templates.ConvertToFloat(of)
	return fmt.Sprintf("%.4g%%", v*100), err
}

// stripPort takes the port from a host and port.
func stripPort(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// stripDomain leaves the first name of a host, and the port.
func stripDomain(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = address, ""
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return address
	}
	host, _, _ = strings.Cut(host, ".")
	if port == "" {
		return host
	}
	return net.JoinHostPort(host, port)
}
