{{/* The keys of the Secret that a part sees: its own user of NATS, and what else it works with. */}}
{{- define "almanac.keys" -}}
{{- $keys := list (printf "nats-%s" .part) }}
{{- if ne .part "setup" }}{{ $keys = append $keys "tokens.yaml" }}{{ end }}
{{- /* setup makes no empty registry beside tables that have rows. */}}
{{- if has .part (list "setup" "sink") }}{{ $keys = append $keys "clickhouse-sink" }}{{ end }}
{{- if eq .part "gateway" }}{{ $keys = concat $keys (list "clickhouse-operator" "clickhouse-reader" "clickhouse-gateway") }}{{ end }}
{{- range $key := .root.Values.secrets.with }}
{{- $users := get (dict "nats-ca.crt" (list "setup" "router" "sink" "timers" "gateway") "clickhouse-ca.crt" (list "setup" "sink" "gateway") "timers-secrets" (list "timers") "pii-key" (list "router" "gateway")) $key }}
{{- if not $users }}{{ fail (printf "secrets.with: %s is not a key that a part works with; values.yaml lists them" $key) }}{{ end }}
{{- if has $.part $users }}{{ $keys = append $keys $key }}{{ end }}
{{- end }}
{{- toJson $keys }}
{{- end }}

{{/* A pod: .root, .part, .args, .secret, .ports (name to number) and whether it is one that ends by itself (.once). */}}
{{- define "almanac.pod" -}}
{{- $v := .root.Values }}
{{- $keys := include "almanac.keys" . | fromJsonArray }}
{{- $own := ternary $v.router (get $v .part) (eq .part "setup") }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with $v.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with $own.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with $own.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- if .once }}
restartPolicy: OnFailure
{{- else }}
terminationGracePeriodSeconds: {{ $v.terminationGracePeriodSeconds }}
topologySpreadConstraints:
  {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "almanac.selector" $ | nindent 8 }}
  {{- end }}
{{- end }}
containers:
  - name: almanac
    image: "{{ $v.image.repository }}:{{ $v.image.tag | default .root.Chart.AppVersion }}"
    imagePullPolicy: {{ $v.image.pullPolicy }}
    args: {{ toJson .args }}
    env:
      - {name: ALMANAC_NATS_FILE, value: /run/almanac/nats-{{ .part }}}
      - {name: ALMANAC_LOG_FORMAT, value: json}
      - {name: GOMEMLIMIT, value: {{ $own.goMemLimit | quote }}}
      {{- if has "nats-ca.crt" $keys }}
      - {name: ALMANAC_NATS_CA, value: /run/almanac/nats-ca.crt}
      {{- end }}
      {{- range $key := list "clickhouse-sink" "clickhouse-operator" }}
      {{- if has $key $keys }}
      - {name: ALMANAC_CLICKHOUSE_FILE, value: /run/almanac/{{ $key }}}
      {{- end }}
      {{- end }}
      {{- if has "clickhouse-reader" $keys }}
      - {name: ALMANAC_CLICKHOUSE_READER_FILE, value: /run/almanac/clickhouse-reader}
      - {name: ALMANAC_CLICKHOUSE_READS_FILE, value: /run/almanac/clickhouse-gateway}
      {{- end }}
      {{- if has "clickhouse-ca.crt" $keys }}
      - {name: ALMANAC_CLICKHOUSE_CA, value: /run/almanac/clickhouse-ca.crt}
      {{- end }}
      {{- if has "timers-secrets" $keys }}
      - {name: ALMANAC_TIMERS_SECRETS_FILE, value: /run/almanac/timers-secrets}
      {{- end }}
      {{- if has "pii-key" $keys }}
      - {name: ALMANAC_PII_KEY_FILE, value: /run/almanac/pii-key}
      {{- end }}
      {{- if not .once }}
      # A Service sends requests for a while after a pod began to end.
      - {name: ALMANAC_DRAIN_DELAY, value: 5s}
      - {name: ALMANAC_TOKENS_FILE, value: /run/almanac/tokens.yaml}
      - {name: ALMANAC_TLS_CERT, value: /run/tls/tls.crt}
      - {name: ALMANAC_TLS_KEY, value: /run/tls/tls.key}
      {{- end }}
    {{- if not .once }}
    ports:
      {{- range $name, $port := .ports }}
      - {name: {{ $name }}, containerPort: {{ $port }}}
      {{- end }}
    # Readiness asks whether this part works, liveness whether it answers at all: a server that is away is not mended by a restart.
    startupProbe:
      httpGet: {path: /healthz, port: http, scheme: HTTPS}
      periodSeconds: 2
      failureThreshold: 30
    livenessProbe:
      httpGet: {path: /healthz, port: http, scheme: HTTPS}
      periodSeconds: 10
      timeoutSeconds: 5
      failureThreshold: 6
    readinessProbe:
      httpGet: {path: /readyz, port: http, scheme: HTTPS}
      periodSeconds: 5
      timeoutSeconds: 5
      failureThreshold: 2
    {{- end }}
    resources: {{ toJson $own.resources }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
    volumeMounts:
      - {name: servers, mountPath: /run/almanac, readOnly: true}
      - {name: settings, mountPath: /etc/almanac, readOnly: true}
      - {name: data, mountPath: /var/lib/almanac}
      - {name: tmp, mountPath: /tmp}
      {{- if not .once }}
      - {name: tls, mountPath: /run/tls, readOnly: true}
      {{- end }}
volumes:
  - name: servers
    secret:
      secretName: {{ .secret }}
      defaultMode: 0400
      items:
        {{- range $keys }}
        - {key: {{ . }}, path: {{ . }}}
        {{- end }}
  - name: settings
    configMap:
      name: {{ include "almanac.name" .root }}-{{ ternary "setup" "settings" (eq .part "setup") }}
  - {name: data, emptyDir: {sizeLimit: 64Mi}}
  - {name: tmp, emptyDir: {sizeLimit: 64Mi}}
  {{- if not .once }}
  - name: tls
    secret: {secretName: {{ include "almanac.tls" .root }}, defaultMode: 0400}
  {{- end }}
{{- end }}
