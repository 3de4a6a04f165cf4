package deploy

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

var write = flag.Bool("write", false, "write what is rendered into helm/rendered")

// values are the installations that are rendered, by the name of the file.
var values = map[string]string{
	"existing": `{secrets: {existing: almanac-servers}, tls: {existing: almanac-tls}}`,
	"given": `
secrets:
  given:
    nats-setup: tls://setup:s@nats:4222
    nats-router: tls://router:r@nats:4222
    nats-sink: tls://sink:k@nats:4222
    nats-timers: tls://timers:t@nats:4222
    nats-gateway: tls://gateway:g@nats:4222
    clickhouse-sink: https://sink:c@clickhouse:8443/almanac
    clickhouse-operator: https://operator:o@clickhouse:8443/almanac
    clickhouse-reader: reader:r
    clickhouse-gateway: gateway:w
    tokens.yaml: "tokens: []"
    nats-ca.crt: CA of NATS
    clickhouse-ca.crt: CA of ClickHouse
    timers-secrets: shop@shop=whsec_c2VjcmV0
    pii-key: 0123456789abcdef
  with: [nats-ca.crt, clickhouse-ca.crt, timers-secrets, pii-key]
tls: {cert: certificate, key: its key}
image: {tag: v1}
imagePullSecrets: [{name: registry}]
settings: {replicas: 3, events_bytes: 20GiB}
topics: [{name: app, keep_days: 30}]
router: {replicas: 3, nodeSelector: {disk: ssd}, tolerations: [{key: logs, operator: Exists}], podAnnotations: {team: sre}}
gateway: {service: {type: LoadBalancer, annotations: {load-balancer: internal}}}
networkPolicy:
  metrics: [{namespaceSelector: {matchLabels: {name: monitoring}}}]
  nats: {to: [{podSelector: {matchLabels: {app: nats}}}], port: 4222}
  clickhouse: {port: 8443}
monitoring: {enabled: true, labels: {release: kube-prometheus-stack}, token: {secret: almanac-metrics}, serverName: almanac.logs.svc, ca: {secret: almanac-ca}}
`,
}

// accounts are the keys with an account of ClickHouse that a part sees.
var accounts = map[string][]string{"setup": {"clickhouse-sink"}, "sink": {"clickhouse-sink"}, "gateway": {"clickhouse-operator", "clickhouse-reader", "clickhouse-gateway"}}

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load("helm/almanac")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

// render is what helm would send to the cluster.
func render(t *testing.T, text string) (string, error) {
	t.Helper()
	given, err := chartutil.ReadValues([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c := load(t)
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "almanac", Namespace: "logs", Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return "", err
	}
	files, err := engine.Engine{Strict: true}.Render(c, all)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if text := strings.TrimSpace(files[name]); text != "" && strings.HasSuffix(name, ".yaml") {
			b.WriteString("---\n" + strings.TrimPrefix(text, "---\n") + "\n")
		}
	}
	return b.String(), nil
}

// kinds are the schemas of Kubernetes that the chart may use.
var kinds = map[string]func() any{
	"v1/ConfigMap":                       func() any { return new(core.ConfigMap) },
	"v1/Secret":                          func() any { return new(core.Secret) },
	"v1/Service":                         func() any { return new(core.Service) },
	"apps/v1/Deployment":                 func() any { return new(apps.Deployment) },
	"batch/v1/Job":                       func() any { return new(batch.Job) },
	"policy/v1/PodDisruptionBudget":      func() any { return new(policy.PodDisruptionBudget) },
	"networking.k8s.io/v1/NetworkPolicy": func() any { return new(networking.NetworkPolicy) },
	// Those of Prometheus' operator.
	"monitoring.coreos.com/v1/PodMonitor":     func() any { return new(monitoring.PodMonitor) },
	"monitoring.coreos.com/v1/PrometheusRule": func() any { return new(monitoring.PrometheusRule) },
}

var between = regexp.MustCompile(`(?m)^---\n`)

// decode reads rendered objects strictly: a field that Kubernetes does not know, or has twice, is an error.
func decode(t *testing.T, text string) (all []any) {
	t.Helper()
	for _, one := range between.Split(text, -1) {
		if strings.TrimSpace(one) == "" {
			continue
		}
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(one), &head); err != nil {
			t.Fatalf("%v:\n%s", err, one)
		}
		typed := kinds[head.APIVersion+"/"+head.Kind]
		if typed == nil {
			t.Fatalf("%s/%s is no kind of the chart's:\n%s", head.APIVersion, head.Kind, one)
		}
		object := typed()
		if err := yaml.UnmarshalStrict([]byte(one), object); err != nil {
			t.Errorf("%s: %v:\n%s", head.Kind, err, one)
		}
		all = append(all, object)
	}
	return all
}

// What helm renders is what helm/rendered has, where everyone sees what a change of a template does, and where the tests
// of cmd/almanac find the command lines; Kubernetes knows every field.
func TestRendered(t *testing.T) {
	for name, text := range values {
		got, err := render(t, text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		decode(t, got)
		path := filepath.Join("helm", "rendered", name+".yaml")
		if *write {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || string(want) != got {
			t.Errorf("%s is not what is rendered (%v): in deploy run go test . -write, and look at the difference", path, err)
		}
	}
}

// A strict reader is one: it refuses a field that is misspelt.
func TestDecodeIsStrict(t *testing.T) {
	if err := yaml.UnmarshalStrict([]byte(`{spec: {template: {spec: {containers: [{argz: [router]}]}}}}`), new(apps.Deployment)); err == nil {
		t.Error("argz passed")
	}
}

// Each part is a Deployment that Kubernetes can move, watch and close in, and names nothing that is not there.
func TestParts(t *testing.T) {
	for name, text := range values {
		got, err := render(t, text)
		if err != nil {
			t.Fatal(err)
		}
		all := decode(t, got)
		secrets, configs := map[string]map[string]bool{}, map[string]bool{}
		var budgets, nets []map[string]string
		var service *core.Service
		for _, object := range all {
			switch o := object.(type) {
			case *core.Secret:
				secrets[o.Name] = map[string]bool{}
				for key := range o.Data {
					secrets[o.Name][key] = true
				}
			case *core.ConfigMap:
				configs[o.Name] = true
			case *core.Service:
				service = o
			case *policy.PodDisruptionBudget:
				budgets = append(budgets, o.Spec.Selector.MatchLabels)
			case *networking.NetworkPolicy:
				nets = append(nets, o.Spec.PodSelector.MatchLabels)
				for _, rule := range o.Spec.Ingress {
					if len(rule.From) == 0 {
						t.Errorf("%s: %s lets everyone in", name, o.Name)
					}
				}
			}
		}
		pod := func(part string, spec *core.PodSpec) {
			c := spec.Containers[0]
			if c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() || !*c.SecurityContext.ReadOnlyRootFilesystem || !*spec.SecurityContext.RunAsNonRoot {
				t.Errorf("%s: %s: resources, security: %+v", name, part, c)
			}
			mounted := map[string]bool{}
			for _, m := range c.VolumeMounts {
				mounted[m.Name] = true
			}
			for _, v := range spec.Volumes {
				if !mounted[v.Name] {
					t.Errorf("%s: %s: nothing mounts %s", name, part, v.Name)
				}
				delete(mounted, v.Name)
				if v.ConfigMap != nil && !configs[v.ConfigMap.Name] {
					t.Errorf("%s: %s: no ConfigMap %s", name, part, v.ConfigMap.Name)
				}
				if v.Secret == nil {
					continue
				}
				made, ours := secrets[v.Secret.SecretName]
				if !ours && name == "given" {
					t.Errorf("%s: %s: no Secret %s", name, part, v.Secret.SecretName)
				}
				for _, item := range v.Secret.Items {
					if ours && !made[item.Key] {
						t.Errorf("%s: %s: Secret %s has no %s", name, part, v.Secret.SecretName, item.Key)
					}
					if strings.HasPrefix(item.Key, "nats-") && item.Key != "nats-"+part && item.Key != "nats-ca.crt" {
						t.Errorf("%s: %s sees %s", name, part, item.Key)
					}
					if strings.HasPrefix(item.Key, "clickhouse-") && item.Key != "clickhouse-ca.crt" && !slices.Contains(accounts[part], item.Key) {
						t.Errorf("%s: %s sees %s", name, part, item.Key)
					}
				}
			}
			env := map[string]string{}
			for _, e := range c.Env {
				env[e.Name] = e.Value
			}
			seen := map[string]bool{}
			for _, v := range spec.Volumes {
				for _, item := range items(v.Secret) {
					seen[item.Key] = true
				}
			}
			for i, account := range accounts[part] {
				if !seen[account] || i == 0 && env["ALMANAC_CLICKHOUSE_FILE"] != "/run/almanac/"+account {
					t.Errorf("%s: %s: does not see the account %s, or does not go by it: %v", name, part, account, env)
				}
			}
			if len(accounts[part]) > 0 && name == "given" && !seen["clickhouse-ca.crt"] {
				t.Errorf("%s: %s: does not see the CA of ClickHouse", name, part)
			}
			if len(mounted) > 0 {
				t.Errorf("%s: %s: no volumes %v", name, part, mounted)
			}
		}
		var parts []string
		for _, object := range all {
			switch o := object.(type) {
			case *batch.Job:
				if o.Annotations["helm.sh/hook"] != "pre-install,pre-upgrade" {
					t.Errorf("%s: setup is no hook: %v", name, o.Annotations)
				}
				pod("setup", &o.Spec.Template.Spec)
			case *apps.Deployment:
				part := strings.TrimPrefix(o.Name, "almanac-")
				parts = append(parts, part)
				selects, labels, c := o.Spec.Selector.MatchLabels, o.Spec.Template.Labels, o.Spec.Template.Spec.Containers[0]
				for key, value := range selects {
					if labels[key] != value {
						t.Errorf("%s: %s does not select its own pods", name, part)
					}
				}
				same := func(m map[string]string) bool { return reflect.DeepEqual(m, selects) }
				if !slices.ContainsFunc(budgets, same) || !slices.ContainsFunc(nets, same) {
					t.Errorf("%s: %s: has no PodDisruptionBudget or no NetworkPolicy", name, part)
				}
				for _, p := range []*core.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
					if p == nil || p.HTTPGet.Scheme != core.URISchemeHTTPS || !slices.ContainsFunc(c.Ports, func(port core.ContainerPort) bool { return port.Name == p.HTTPGet.Port.StrVal }) {
						t.Errorf("%s: %s: probe %+v", name, part, p)
					}
				}
				if part == "gateway" {
					for _, p := range service.Spec.Ports {
						if !slices.ContainsFunc(c.Ports, func(port core.ContainerPort) bool {
							return port.Name == p.TargetPort.StrVal && port.ContainerPort == p.Port
						}) {
							t.Errorf("%s: the Service's %s leads nowhere", name, p.Name)
						}
					}
					if !reflect.DeepEqual(service.Spec.Selector, selects) {
						t.Errorf("%s: the Service selects %v", name, service.Spec.Selector)
					}
				}
				pod(part, &o.Spec.Template.Spec)
			}
		}
		if slices.Sort(parts); !slices.Equal(parts, []string{"gateway", "router", "sink", "timers"}) {
			t.Errorf("%s: %v", name, parts)
		}
	}
}

func items(s *core.SecretVolumeSource) []core.KeyToPath {
	if s == nil {
		return nil
	}
	return s.Items
}

// What is missing or unknown ends the rendering with a sentence that names it.
func TestRefusals(t *testing.T) {
	for text, says := range map[string]string{
		`{tls: {existing: t}}`:                     "secrets.existing",
		`{secrets: {existing: s}}`:                 "tls.existing",
		`{secrets: {existing: s}, tls: {cert: c}}`: "tls.cert and tls.key",
		`{secrets: {given: {nats-setup: x, clickhouse-sink: x}}, tls: {existing: t}}`:                                            "nats-router is missing",
		`{secrets: {given: {nats-setup: x, nats-router: x, nats-sink: x, nats-timers: x, nats-gateway: x}}, tls: {existing: t}}`: "clickhouse-sink is missing",
		`{secrets: {existing: s, with: [nats-ca]}, tls: {existing: t}}`:                                                          "nats-ca is not a key",
		`{secrets: {existing: s}, tls: {existing: t}, replicas: 3}`:                                                              "replicas",
		`{secrets: {existing: s}, tls: {existing: t}, router: {replica: 3}}`:                                                     "replica",
		`{secrets: {existing: s}, tls: {existing: t}, networkPolicy: {client: []}}`:                                              "client",
		`{secrets: {existing: s}, tls: {existing: t}, gateway: {service: {typ: NodePort}}}`:                                      "typ",
		`{secrets: {existing: s}, tls: {existing: t}, monitoring: {enabled: true}}`:                                              "monitoring.token.secret",
		`{secrets: {existing: s}, tls: {existing: t}, monitoring: {enabled: true, token: {secret: s}}}`:                          "monitoring.serverName",
		`{secrets: {existing: s}, tls: {existing: t}, monitoring: {enable: true}}`:                                               "enable",
	} {
		if _, err := render(t, text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

// The alerts of the chart are those of deploy/prometheus, and the monitor finds each part at the port that shows its numbers,
// under the job that the alerts ask for.
func TestMonitoring(t *testing.T) {
	for name, text := range values {
		got, err := render(t, text)
		if err != nil {
			t.Fatal(err)
		}
		var rules *monitoring.PrometheusRule
		var monitor *monitoring.PodMonitor
		var parts []*apps.Deployment
		for _, object := range decode(t, got) {
			switch o := object.(type) {
			case *monitoring.PrometheusRule:
				rules = o
			case *monitoring.PodMonitor:
				monitor = o
			case *apps.Deployment:
				parts = append(parts, o)
			}
		}
		if name != "given" {
			if rules != nil || monitor != nil {
				t.Errorf("%s: it was not asked for", name)
			}
			continue
		}
		if rules == nil || monitor == nil {
			t.Fatalf("%s: no PrometheusRule or no PodMonitor", name)
		}
		data, err := os.ReadFile("prometheus/almanac.rules.yaml")
		if err != nil {
			t.Fatal(err)
		}
		var want monitoring.PrometheusRuleSpec
		if err := yaml.UnmarshalStrict(data, &want); err != nil {
			t.Fatal(err)
		}
		if len(want.Groups) == 0 || !reflect.DeepEqual(rules.Spec, want) {
			t.Errorf("the chart has other alerts than deploy/prometheus:\n%+v", rules.Spec)
		}
		for _, labels := range []map[string]string{rules.Labels, monitor.Labels} {
			if labels["release"] != "kube-prometheus-stack" {
				t.Errorf("Prometheus does not select %v", labels)
			}
		}
		at := monitor.Spec.PodMetricsEndpoints[0]
		for _, p := range parts {
			labels := p.Spec.Template.Labels
			for key, value := range monitor.Spec.Selector.MatchLabels {
				if labels[key] != value {
					t.Errorf("the monitor does not select %s", p.Name)
				}
			}
			if job := labels[monitor.Spec.JobLabel]; !strings.Contains(string(data), `job="`+job+`"`) {
				t.Errorf("%s is scraped as the job %q, which no alert asks for", p.Name, job)
			}
			if !slices.ContainsFunc(p.Spec.Template.Spec.Containers[0].Ports, func(port core.ContainerPort) bool { return at.Port != nil && port.Name == *at.Port }) {
				t.Errorf("%s has no port %v", p.Name, at.Port)
			}
		}
	}
}
