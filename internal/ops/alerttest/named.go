package alerttest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// word is a metric of Almanac in a text. One that ends in an underscore or a star stands for several, and is not found.
var word = regexp.MustCompile(`\balmanac_[a-z_]*[a-z]\b`)

// Named returns every metric of Almanac that rules, their tests, the dashboard, runbooks, README and docs/operations.md of a
// tree name, with the file that does.
func Named(tree string) (map[string]string, error) {
	out := map[string]string{}
	texts, err := filepath.Glob(filepath.Join(tree, "docs/runbooks/*.md"))
	if err != nil {
		return nil, err
	}
	texts = append(texts, filepath.Join(tree, "README.md"), filepath.Join(tree, "docs/operations.md"), filepath.Join(tree, "deploy/prometheus/almanac.rules.yaml"))
	for _, path := range texts {
		text, err := os.ReadFile(path) //nolint:gosec // a file of the tree
		if err != nil {
			return nil, err
		}
		for _, name := range word.FindAllString(string(text), -1) {
			out[name] = path
		}
	}
	exprs, err := Dashboard(filepath.Join(tree, "deploy/grafana/almanac.json"))
	if err != nil {
		return nil, err
	}
	for title, list := range exprs {
		for _, expr := range list {
			found, err := Names(expr)
			if err != nil {
				return nil, fmt.Errorf("the panel %q: %w", title, err)
			}
			for _, name := range found {
				if strings.HasPrefix(name, "almanac_") {
					out[name] = "the panel " + title
				}
			}
		}
	}
	return out, nil
}

// variables are what Grafana replaces in expressions, each with a value that parses: the expressions are read for their names alone.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$topic", ".*")

// Dashboard returns the expressions of a dashboard, by panel, with its variables replaced.
func Dashboard(path string) (map[string][]string, error) {
	text, err := os.ReadFile(path) //nolint:gosec // a file of the tree
	if err != nil {
		return nil, err
	}
	var d struct {
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	out := map[string][]string{}
	for _, p := range d.Panels {
		if p.Type != "row" && len(p.Targets) == 0 || out[p.Title] != nil {
			return nil, fmt.Errorf("%s: the panel %q shows nothing, or there are two", path, p.Title)
		}
		for _, t := range p.Targets {
			out[p.Title] = append(out[p.Title], variables.Replace(t.Expr))
		}
	}
	return out, nil
}
