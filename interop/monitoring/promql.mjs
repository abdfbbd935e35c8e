// Reads expressions with the grammar of Prometheus' own editor and tells which metrics, labels and values they name.
// stdin: [{where, expr}]; stdout: the same with {error} or {selectors: [{metric, matchers: [{label, op, value}]}], groupings: [{labels, metrics}]}
import { parser } from '@prometheus-io/lezer-promql';

const input = await new Response(process.stdin).json();
console.log(JSON.stringify(input.map((one) => ({ ...one, ...read(one.expr) }))));

function read(expr) {
  const text = (node) => expr.slice(node.from, node.to);
  const selectors = [];
  const groupings = [];
  let error;
  const metrics = (node) => below(node, 'VectorSelector').map((selector) => selector.getChild('Identifier')).filter(Boolean).map(text);
  parser.parse(expr).iterate({
    enter({ type, node }) {
      if (type.isError) error ??= `cannot be read at “${expr.slice(Math.max(0, node.from - 20), node.to + 20)}”`;
      if (type.name === 'VectorSelector') {
        const name = node.getChild('Identifier');
        if (!name) error ??= `has a selector without a name: ${text(node)}`;
        const matchers = below(node, 'UnquotedLabelMatcher').map((matcher) => ({
          label: text(matcher.getChild('LabelName')),
          op: text(matcher.getChild('MatchOp')),
          value: unquoted(text(matcher.getChild('StringLiteral'))),
        }));
        selectors.push({ metric: name && text(name), matchers });
      }
      if (type.name === 'GroupingLabels') {
        // of `sum by (…) (…)`: the expression in the brackets; of `on (…)`: both sides
        const owner = node.parent.name === 'AggregateModifier' ? node.parent.parent : around(node, 'BinaryExpr');
        groupings.push({ labels: node.getChildren('LabelName').map(text), metrics: metrics(owner) });
      }
    },
  });
  return error ? { error } : { selectors, groupings };
}

function unquoted(literal) {
  return literal.startsWith('"') ? JSON.parse(literal) : literal.slice(1, -1);
}

function around(node, name) {
  let found = node.parent;
  while (found && found.name !== name) found = found.parent;
  return found;
}

function below(node, name) {
  const found = [];
  node.cursor().iterate((child) => { if (child.name === name && child.from >= node.from && child.to <= node.to) found.push(child.node); });
  return found;
}
