package devstack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"
)

// DefaultRetention is the time closed workflows stay visible.
const DefaultRetention = 30 * 24 * time.Hour

// Namespace describes a namespace of a Temporal cluster.
type Namespace struct {
	Name string
	// Retention is the minimum time closed workflows stay visible; 0 means
	// DefaultRetention. A namespace that keeps them longer is left alone.
	Retention time.Duration
	// Attributes are the search attributes that it must have.
	Attributes SearchAttributes
}

// SearchAttributes are typed search attributes by name.
type SearchAttributes map[string]enumspb.IndexedValueType

func (n Namespace) validate() error {
	if n.Name == "" {
		return errors.New("the namespace has no name")
	}
	return nil
}

func (n Namespace) retention() time.Duration {
	if n.Retention == 0 {
		return DefaultRetention
	}
	return n.Retention
}

// AttributeTypeError is returned when a namespace has a search attribute of the
// wanted name but another type: only an operator can solve that.
type AttributeTypeError struct {
	Namespace, Attribute string
	Has, Want            enumspb.IndexedValueType
}

// Error says what to do.
func (e *AttributeTypeError) Error() string {
	return fmt.Sprintf("search attribute %[2]s of namespace %[1]s has type %[3]v, %[4]v is needed: remove it with \"temporal operator search-attribute remove --namespace %[1]s --name %[2]s\", or use another namespace",
		e.Namespace, e.Attribute, e.Has, e.Want)
}

const (
	// visibleBound bounds the time until something created in a cluster can be used:
	// its services read namespaces and search attributes through caches that live
	// for up to a minute.
	visibleBound    = 2 * time.Minute
	visibleInterval = 100 * time.Millisecond
)

// EnsureNamespace creates the namespace and its missing search attributes, raises a
// retention that is too short, and returns when everything can be used. Calling it again
// changes nothing. It works with any cluster, and needs no write permission if nothing is
// missing. The error is *AttributeTypeError for an attribute of another type.
func EnsureNamespace(ctx context.Context, c client.Client, namespace Namespace) error {
	if err := namespace.validate(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, visibleBound)
	defer cancel()
	if err := ensureRegistered(ctx, c.WorkflowService(), namespace); err != nil {
		return fmt.Errorf("preparing namespace %s: %w", namespace.Name, err)
	}
	if err := ensureAttributes(ctx, c, namespace); err != nil {
		return fmt.Errorf("preparing the search attributes of namespace %s: %w", namespace.Name, err)
	}
	return nil
}

func ensureRegistered(ctx context.Context, service workflowservice.WorkflowServiceClient, namespace Namespace) error {
	describe := &workflowservice.DescribeNamespaceRequest{Namespace: namespace.Name}
	found, err := service.DescribeNamespace(ctx, describe)
	if _, missing := errors.AsType[*serviceerror.NamespaceNotFound](err); missing {
		_, err = service.RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
			Namespace:                        namespace.Name,
			WorkflowExecutionRetentionPeriod: durationpb.New(namespace.retention()),
		})
		if _, exists := errors.AsType[*serviceerror.NamespaceAlreadyExists](err); err != nil && !exists {
			return fmt.Errorf("creating it: %w", err)
		}
		found, err = service.DescribeNamespace(ctx, describe)
	}
	if err != nil {
		return fmt.Errorf("describing it: %w", err)
	}
	if found.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration() >= namespace.retention() {
		return nil
	}
	_, err = service.UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: namespace.Name,
		Config:    &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(namespace.retention())},
	})
	if err != nil {
		return fmt.Errorf("raising its retention to %v: %w", namespace.retention(), err)
	}
	return nil
}

func ensureAttributes(ctx context.Context, c client.Client, namespace Namespace) error {
	if len(namespace.Attributes) == 0 {
		return nil
	}
	missing, err := missingAttributes(ctx, c, namespace)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		_, err := c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
			Namespace:        namespace.Name,
			SearchAttributes: missing,
		})
		if _, exists := errors.AsType[*serviceerror.AlreadyExists](err); err != nil && !exists {
			names := strings.Join(slices.Sorted(maps.Keys(missing)), ", ")
			return fmt.Errorf("adding %s: %w: an operator can add them with \"temporal operator search-attribute create\"", names, err)
		}
	}
	return awaitUsable(ctx, c.WorkflowService(), namespace)
}

func missingAttributes(ctx context.Context, c client.Client, namespace Namespace) (SearchAttributes, error) {
	var list *operatorservice.ListSearchAttributesResponse
	err := retryUnknownNamespace(ctx, func() (err error) {
		list, err = c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace.Name})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing them: %w", err)
	}
	missing := SearchAttributes{}
	for _, name := range slices.Sorted(maps.Keys(namespace.Attributes)) {
		want := namespace.Attributes[name]
		has, ok := list.GetCustomAttributes()[name]
		switch {
		case !ok:
			missing[name] = want
		case has != want:
			return nil, &AttributeTypeError{Namespace: namespace.Name, Attribute: name, Has: has, Want: want}
		}
	}
	return missing, nil
}

// awaitUsable returns when a query may name every attribute.
func awaitUsable(ctx context.Context, service workflowservice.WorkflowServiceClient, namespace Namespace) error {
	var terms []string
	for _, name := range slices.Sorted(maps.Keys(namespace.Attributes)) {
		terms = append(terms, name+" IS NOT NULL")
	}
	request := &workflowservice.CountWorkflowExecutionsRequest{Namespace: namespace.Name, Query: strings.Join(terms, " AND ")}
	return retry(ctx, func() (bool, error) {
		_, err := service.CountWorkflowExecutions(ctx, request)
		_, unknown := errors.AsType[*serviceerror.InvalidArgument](err)
		return unknown, err
	})
}

// retryUnknownNamespace repeats a call while the cluster does not know a
// namespace that was just created.
func retryUnknownNamespace(ctx context.Context, call func() error) error {
	return retry(ctx, func() (bool, error) {
		err := call()
		_, unknown := errors.AsType[*serviceerror.NamespaceNotFound](err)
		return unknown, err
	})
}

// retry repeats a call while the call asks for it and the context lasts.
func retry(ctx context.Context, call func() (again bool, err error)) error {
	tick := time.NewTicker(visibleInterval)
	defer tick.Stop()
	for {
		again, err := call()
		if !again {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for it to become usable: %w", err)
		case <-tick.C:
		}
	}
}
