package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// charted is what the chart renders, as far as the test knows it.
type charted struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Args         []string
					Env          []struct{ Name, Value string }
					VolumeMounts []struct {
						Name string
						Path string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct {
					Name   string
					Secret struct {
						Items []struct{ Path string }
					}
				}
			}
		}
	}
}

// rendered is what the module deploy rendered of its chart; its own test says that it is that still.
func rendered(t *testing.T, file string) (all []charted) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for d := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var one charted
		err := d.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, one)
	}
}

// Every command line of the chart is one of Almanac's, its settings are known, and the files that they name are mounted.
func TestChartNamesWhatIsThere(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../deploy/helm/rendered/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("nothing is rendered", err)
	}
	for _, file := range files {
		parts := 0
		for _, o := range rendered(t, file) {
			if text, ok := o.Data["almanac.yaml"]; ok {
				b := newBox(t)
				b.ok("", "config", "show", "--config", b.write("almanac.yaml", text))
			}
			pod := o.Spec.Template.Spec
			for _, c := range pod.Containers {
				parts++
				if err := runs(c.Args); err != nil {
					t.Errorf("%s: %s: %v: %v", file, o.Metadata.Name, c.Args, err)
				}
				mounted := map[string]bool{"/run/tls/tls.crt": true, "/run/tls/tls.key": true}
				for _, m := range c.VolumeMounts {
					for _, v := range pod.Volumes {
						for _, item := range v.Secret.Items {
							if v.Name == m.Name {
								mounted[path.Join(m.Path, item.Path)] = true
							}
						}
					}
				}
				set := map[string]string{}
				for _, e := range c.Env {
					set[e.Name] = e.Value
					if strings.HasPrefix(e.Value, "/") && !mounted[e.Value] {
						t.Errorf("%s: %s: %s names %s, which is not mounted", file, o.Metadata.Name, e.Name, e.Value)
					}
				}
				if err := checkEnvironment(environment(set), true); err != nil {
					t.Errorf("%s: %s: %v", file, o.Metadata.Name, err)
				}
			}
		}
		if parts != 5 {
			t.Errorf("%s: %d parts", file, parts)
		}
	}
}
