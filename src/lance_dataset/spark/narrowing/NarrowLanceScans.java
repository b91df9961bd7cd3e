import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.MakeDecimal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapInArrow;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Tells scans of Lance which columns a query needs, its conditions, and how many rows it takes at most.
 *
 * A scan is a MapInArrow over one row for each task: a number, and a column named WIDE. The rule puts a column named
 * NARROW in its place: a struct of a text in JSON, which says what the query needs, and of the literals of the
 * conditions. The query still evaluates its conditions, so those that the scan does not understand cost time only.
 *
 * Decimals of at most 18 digits come as integers without their scale, which Spark turns into decimals: it reads decimals
 * of Arrow through big numbers of Java.
 *
 * The text is compiled by the compiler that Spark generates code with. It does without lambdas and inferred types.
 */
public final class NarrowLanceScans extends Rule {
    private static final String WIDE = "lance_scan";
    private static final String NARROW = "lance_request";
    private static final Set PLAIN = new HashSet(Arrays.asList(new String[] {
        "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp",
        "timestamp_ntz"
    }));
    private static final int MOST_VALUES = 1000;
    /** Longs hold all decimals of so many digits. */
    private static final int MOST_DIGITS = 18;
    /** Deeper expressions are not described: the parsers of JSON and of filters have limits. */
    private static final int DEEPEST = 90;

    /** Adds the rule to a session, once. */
    public void install(ExperimentalMethods methods) {
        List rules = list(methods.extraOptimizations());
        for (int i = 0; i < rules.size(); i++) {
            if (rules.get(i) instanceof NarrowLanceScans) {
                return;
            }
        }
        rules.add(this);
        methods.extraOptimizations_$eq(sequence(rules));
    }

    public TreeNode apply(TreeNode plan) {
        try {
            return visit((LogicalPlan) plan, null, new ArrayList(), -1);
        } catch (Throwable error) {
            log().warn("Scans of Lance read more than the query needs", error);
            return plan;
        }
    }

    /**
     * Returns the plan with narrower scans.
     *
     * `needed` has the attributes that the parent uses, or is null for all; `conditions` are those of the parent, and
     * `limit` is the number of rows that it takes at most, or negative.
     */
    private static LogicalPlan visit(LogicalPlan plan, AttributeSet needed, List conditions, int limit) {
        if (plan instanceof MapInArrow && isWide((MapInArrow) plan)) {
            return narrowed((MapInArrow) plan, needed, conditions, limit);
        }
        List children = list(plan.children());
        if (plan instanceof Project) {
            return over(plan, visit((LogicalPlan) children.get(0), plan.references(), new ArrayList(), limit));
        }
        if (plan instanceof Aggregate) {
            return over(plan, visit((LogicalPlan) children.get(0), plan.references(), new ArrayList(), -1));
        }
        if (plan instanceof Filter) {
            AttributeSet both = needed == null ? null : needed.$plus$plus(plan.references());
            List parts = new ArrayList();
            split(((Filter) plan).condition(), parts);
            return over(plan, visit((LogicalPlan) children.get(0), both, parts, -1));
        }
        if (plan instanceof LocalLimit && ((LocalLimit) plan).limitExpr() instanceof Literal) {
            Object rows = ((Literal) ((LocalLimit) plan).limitExpr()).value();
            int most = rows instanceof Integer ? ((Integer) rows).intValue() : -1;
            return over(plan, visit((LogicalPlan) children.get(0), needed, new ArrayList(), most));
        }
        List changed = new ArrayList();
        boolean same = true;
        for (int i = 0; i < children.size(); i++) {
            LogicalPlan child = visit((LogicalPlan) children.get(i), null, new ArrayList(), -1);
            same = same && child == children.get(i);
            changed.add(child);
        }
        return same ? plan : (LogicalPlan) plan.withNewChildren(sequence(changed));
    }

    private static LogicalPlan over(LogicalPlan plan, LogicalPlan child) {
        if (plan.children().apply(0) == child) {
            return plan;
        }
        return (LogicalPlan) plan.withNewChildren(sequence(new ArrayList(Arrays.asList(new Object[] {child}))));
    }

    private static boolean isWide(MapInArrow scan) {
        if (!(scan.child() instanceof Project)) {
            return false;
        }
        List given = list(((LogicalPlan) scan.child()).output());
        return given.size() == 2 && ((Attribute) given.get(1)).name().equals(WIDE);
    }

    private static LogicalPlan narrowed(MapInArrow scan, AttributeSet needed, List conditions, int limit) {
        List all = list(scan.output());
        List kept = new ArrayList();
        StringBuilder columns = new StringBuilder();
        for (int i = 0; i < all.size(); i++) {
            if (needed == null || needed.contains((NamedExpression) all.get(i))) {
                kept.add(all.get(i));
                columns.append(columns.length() > 0 ? "," : "").append(i);
            }
        }
        if (kept.isEmpty() && !all.isEmpty()) {
            int smallest = smallest(all);
            kept.add(all.get(smallest));
            columns.append(smallest);
        }
        List values = new ArrayList();
        StringBuilder texts = new StringBuilder();
        for (int i = 0; i < conditions.size(); i++) {
            texts.append(i > 0 ? "," : "");
            describe((Expression) conditions.get(i), all, values, texts, 0);
        }
        List given = new ArrayList();
        List shown = new ArrayList();
        // Where all columns are needed as they are, rows would be copied once more.
        boolean unscaled = needed != null && unscale(kept, given, shown);
        if (!unscaled) {
            given = kept;
        }
        if (kept.size() == all.size() && conditions.isEmpty() && limit < 0 && !unscaled) {
            return scan;
        }
        String request = "{\"columns\":[" + columns + "],\"conditions\":[" + texts + "],\"limit\":" + limit
            + ",\"unscaled\":" + unscaled + "}";
        MapInArrow narrow = over(scan, given, request, values);
        return unscaled ? new Project(sequence(shown), narrow) : narrow;
    }

    /**
     * Fills `given` with what the scan delivers for the columns `kept`, and `shown` with these columns made of it.
     *
     * Returns true if they differ, because there are decimals that fit into a long.
     */
    private static boolean unscale(List kept, List given, List shown) {
        boolean differ = false;
        for (int i = 0; i < kept.size(); i++) {
            Attribute column = (Attribute) kept.get(i);
            if (!(column.dataType() instanceof DecimalType)
                    || ((DecimalType) column.dataType()).precision() > MOST_DIGITS) {
                given.add(column);
                shown.add(column);
                continue;
            }
            DecimalType type = (DecimalType) column.dataType();
            Attribute number = new AttributeReference(
                column.name(), DataTypes.LongType, column.nullable(), Metadata.empty(), newId(), none());
            given.add(number);
            shown.add(new Alias(
                new MakeDecimal(number, type.precision(), type.scale(), false),
                column.name(), column.exprId(), column.qualifier(), scala.Option.apply(column.metadata()), none()));
            differ = true;
        }
        return differ;
    }

    private static MapInArrow over(MapInArrow scan, List output, String request, List values) {
        Project before = (Project) scan.child();
        List parts = new ArrayList();
        parts.add(text("text"));
        parts.add(text(request));
        for (int i = 0; i < values.size(); i++) {
            parts.add(text("value" + i));
            parts.add(values.get(i));
        }
        List given = new ArrayList();
        given.add(list(before.projectList()).get(0));
        given.add(named(new CreateNamedStruct(sequence(parts)), NARROW));
        Project child = new Project(sequence(given), before.child());
        Expression function = (Expression) scan.functionExpr().withNewChildren(child.output());
        return scan.copy(function, sequence(output), child, scan.isBarrier(), scan.profile());
    }

    private static Literal text(String value) {
        return new Literal(UTF8String.fromString(value), DataTypes.StringType);
    }

    private static Alias named(Expression value, String name) {
        return new Alias(value, name, newId(), none(), scala.Option.empty(), none());
    }

    private static ExprId newId() {
        return org.apache.spark.sql.catalyst.expressions.NamedExpression$.MODULE$.newExprId();
    }

    private static scala.collection.immutable.Seq none() {
        return sequence(new ArrayList());
    }

    private static int smallest(List attributes) {
        int found = 0;
        for (int i = 1; i < attributes.size(); i++) {
            if (((Attribute) attributes.get(i)).dataType().defaultSize()
                    < ((Attribute) attributes.get(found)).dataType().defaultSize()) {
                found = i;
            }
        }
        return found;
    }

    private static void split(Expression condition, List parts) {
        if (condition instanceof And) {
            split(((And) condition).left(), parts);
            split(((And) condition).right(), parts);
        } else {
            parts.add(condition);
        }
    }

    /** Appends an expression: columns and fields by position, literals by their number among `values`. */
    private static void describe(Expression expression, List columns, List values, StringBuilder text, int depth) {
        if (depth > DEEPEST) {
            text.append("{\"call\":\"Deep\",\"arguments\":[]}");
        } else if (expression instanceof AttributeReference) {
            text.append("{\"column\":").append(position((AttributeReference) expression, columns)).append("}");
        } else if (expression instanceof GetStructField) {
            text.append("{\"field\":").append(((GetStructField) expression).ordinal()).append(",\"of\":");
            describe(((GetStructField) expression).child(), columns, values, text, depth + 1);
            text.append("}");
        } else if (expression instanceof Literal) {
            text.append("{\"value\":").append(number((Literal) expression, values)).append("}");
        } else {
            List arguments = list(expression.children());
            if (expression instanceof InSet) {
                List members = list(((InSet) expression).hset().toSeq());
                for (int i = 0; i < members.size(); i++) {
                    arguments.add(new Literal(members.get(i), ((InSet) expression).child().dataType()));
                }
            }
            text.append("{\"call\":\"").append(expression.getClass().getSimpleName()).append("\",\"arguments\":[");
            for (int i = 0; i < arguments.size(); i++) {
                text.append(i > 0 ? "," : "");
                describe((Expression) arguments.get(i), columns, values, text, depth + 1);
            }
            text.append("]}");
        }
    }

    private static int position(AttributeReference wanted, List columns) {
        for (int i = 0; i < columns.size(); i++) {
            if (((Attribute) columns.get(i)).exprId().equals(wanted.exprId())) {
                return i;
            }
        }
        return -1;
    }

    private static int number(Literal literal, List values) {
        String type = literal.dataType().simpleString();
        if (values.size() >= MOST_VALUES || !(PLAIN.contains(type) || type.startsWith("decimal("))) {
            return -1;
        }
        values.add(literal);
        return values.size() - 1;
    }

    private static List list(scala.collection.Seq sequence) {
        return new ArrayList(scala.jdk.javaapi.CollectionConverters.asJava(sequence));
    }

    private static scala.collection.immutable.Seq sequence(List list) {
        return (scala.collection.immutable.Seq) scala.jdk.javaapi.CollectionConverters.asScala(list).toList();
    }
}
