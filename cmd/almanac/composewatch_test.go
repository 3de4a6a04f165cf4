package main

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// given is the file that a service finds under a name, or that begins there.
func (c *composed) given(t *testing.T, service, target string) []byte {
	t.Helper()
	for _, f := range c.Services[service].Configs {
		if f.Target == target || path.Dir(f.Target) == target {
			data, err := os.ReadFile(filepath.Join("../..", c.Configs[f.Source].File))
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
	}
	t.Fatalf("%s is given no %s: %v", service, target, c.Services[service].Configs)
	return nil
}

// scraping is a configuration of Prometheus: what deploy/prometheus has of it, so that a name that is misspelt is refused. Prometheus' own
// reader would link the clients of every cloud.
type scraping struct {
	Global struct {
		Scrape   time.Duration `yaml:"scrape_interval"`
		Evaluate time.Duration `yaml:"evaluation_interval"`
	}
	RuleFiles []string `yaml:"rule_files"`
	Scrapes   []struct {
		Job    string `yaml:"job_name"`
		Scheme string
		TLS    struct {
			CA   string `yaml:"ca_file"`
			Name string `yaml:"server_name"`
		} `yaml:"tls_config"`
		Authorization struct {
			File string `yaml:"credentials_file"`
		}
		Parts []struct {
			Names   []string
			Type    string
			Port    int
			Refresh time.Duration `yaml:"refresh_interval"`
		} `yaml:"dns_sd_configs"`
	} `yaml:"scrape_configs"`
}

var pinned = regexp.MustCompile(`:v?\d+\.\d+`)

// Every image that is not ours is of a version. Prometheus finds each part where that shows its numbers, under the job that the alerts
// ask for, and has the alerts; Grafana finds Prometheus and the dashboard.
func TestComposeIsWatched(t *testing.T) {
	t.Parallel()
	c, _ := compose(t)
	for name, s := range c.Services {
		if s.Image != "almanac:dev" && !pinned.MatchString(s.Image) {
			t.Errorf("%s: the image %s is of no version", name, s.Image)
		}
	}
	var cfg scraping
	strict := yaml.NewDecoder(bytes.NewReader(c.given(t, "prometheus", "/etc/prometheus/prometheus.yml")))
	strict.KnownFields(true)
	if err := strict.Decode(&cfg); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(c.Services["prometheus"].Command, "--config.file=/etc/prometheus/prometheus.yml") || len(cfg.RuleFiles) != 1 || len(cfg.Scrapes) != 1 || len(cfg.Scrapes[0].Parts) != 1 {
		t.Fatalf("Prometheus reads %v, %+v", c.Services["prometheus"].Command, cfg)
	}
	scrape := cfg.Scrapes[0]
	if rules := string(c.given(t, "prometheus", cfg.RuleFiles[0])); !strings.Contains(rules, `up{job="`+scrape.Job+`"}`) {
		t.Errorf("no alert asks for the job %s", scrape.Job)
	}
	parts := scrape.Parts[0]
	if len(parts.Names) != 4 || scrape.Scheme != "https" || parts.Type != "A" || scrape.Authorization.File == "" {
		t.Errorf("the scrape is %+v", scrape)
	}
	for _, name := range parts.Names {
		s := c.Services[name]
		if !slices.Contains(s.Command, "0.0.0.0:7070") || parts.Port != 7070 || s.Environment["ALMANAC_TLS_CERT"] != scrape.TLS.CA || s.Environment["ALMANAC_TOKENS_FILE"] == "" {
			t.Errorf("%s shows no numbers to others: %v, %v", name, s.Command, s.Environment)
		}
	}

	var sources struct {
		Datasources []struct {
			URL       string
			IsDefault bool `yaml:"isDefault"`
			Type      string
		}
	}
	if err := yaml.Unmarshal(c.given(t, "grafana", "/etc/grafana/provisioning/datasources"), &sources); err != nil || len(sources.Datasources) != 1 {
		t.Fatal(err, sources)
	}
	source := sources.Datasources[0]
	if u, err := url.Parse(source.URL); err != nil || !has(c.Services, u.Hostname()) || u.Port() != "9090" || !source.IsDefault || source.Type != "prometheus" {
		t.Errorf("%v: Grafana asks %+v", err, source)
	}
	var boards struct {
		Providers []struct{ Options struct{ Path string } }
	}
	if err := yaml.Unmarshal(c.given(t, "grafana", "/etc/grafana/provisioning/dashboards"), &boards); err != nil || len(boards.Providers) != 1 {
		t.Fatal(err, boards)
	}
	var board struct{ Panels []any }
	if err := json.Unmarshal(c.given(t, "grafana", boards.Providers[0].Options.Path), &board); err != nil || len(board.Panels) == 0 {
		t.Errorf("%v: a dashboard of %d panels", err, len(board.Panels))
	}
}
