package documents_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// manifest is what a file of deploy/kubernetes describes, with the pods that it makes.
type manifest struct {
	file     string
	object   runtime.Object
	selector *metav1.LabelSelector // nil if the kind has none
	pod      *corev1.PodTemplateSpec
}

// manifests reads all files of deploy/kubernetes, and fails for a field that Kubernetes does not
// know, as kubectl apply --validate=strict does.
func manifests(t *testing.T) (all []manifest) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme,
	} {
		require.NoError(t, add(scheme))
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	files, err := filepath.Glob("../../deploy/kubernetes/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(content)))
		for document := make([]byte, len(content)); ; {
			n, err := documents.Read(document)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, file)
			object, _, err := decoder.Decode(document[:n], nil, nil)
			require.NoError(t, err, file)
			m := manifest{file: filepath.Base(file), object: object}
			switch o := object.(type) {
			case *appsv1.Deployment:
				m.selector, m.pod = o.Spec.Selector, &o.Spec.Template
			case *batchv1.CronJob:
				m.pod = &o.Spec.JobTemplate.Spec.Template
			}
			all = append(all, m)
		}
	}
	return all
}

func TestManifestsFitKubernetes(t *testing.T) {
	t.Parallel()
	for _, m := range manifests(t) {
		if m.pod == nil {
			continue
		}
		if m.selector != nil {
			selector, err := metav1.LabelSelectorAsSelector(m.selector)
			require.NoError(t, err)
			require.True(t, selector.Matches(labels.Set(m.pod.Labels)), "%s: the selector", m.file)
		}
		spec := m.pod.Spec
		require.NotNil(t, spec.TerminationGracePeriodSeconds, m.file)
		require.True(t, *spec.SecurityContext.RunAsNonRoot, m.file)
		for _, container := range append(spec.InitContainers, spec.Containers...) {
			require.Nil(t, container.LivenessProbe, "%s: %s: the lock has nothing to do with it",
				m.file, container.Name)
			require.False(t, *container.SecurityContext.AllowPrivilegeEscalation, m.file)
			require.NotEmpty(t, container.Resources.Requests, m.file)
		}
	}
}

// TestManifestsRetryWhatCanSucceed compares the statuses that a CronJob does not retry with those
// that docs/program.md lists.
func TestManifestsRetryWhatCanSucceed(t *testing.T) {
	t.Parallel()
	for _, m := range manifests(t) {
		job, is := m.object.(*batchv1.CronJob)
		if !is {
			continue
		}
		require.Equal(t, corev1.RestartPolicyNever, m.pod.Spec.RestartPolicy)
		for _, rule := range job.Spec.JobTemplate.Spec.PodFailurePolicy.Rules {
			if rule.Action == batchv1.PodFailurePolicyActionFailJob {
				require.Equal(t, []int32{64, 126, 127}, rule.OnExitCodes.Values)
			}
		}
	}
}

// TestManifestsHaveFlagsOfTheProgram finds the command and the flags of each container of the
// program in its help.
func TestManifestsHaveFlagsOfTheProgram(t *testing.T) {
	t.Parallel()
	program := buildProgram(t)
	for _, m := range manifests(t) {
		if m.pod == nil {
			continue
		}
		for _, container := range append(m.pod.Spec.InitContainers, m.pod.Spec.Containers...) {
			if !strings.Contains(container.Image+strings.Join(container.Command, " "), "holdfast") {
				continue
			}
			out, err := exec.Command(program, container.Args[0], "--help").CombinedOutput()
			require.NoError(t, err, "%s: %s", m.file, out)
			for _, arg := range container.Args[1:] {
				if arg == "--" {
					break
				}
				if strings.HasPrefix(arg, "-") {
					require.Regexp(t, regexp.QuoteMeta(arg)+`\b`, string(out), m.file)
				}
			}
		}
	}
}
