/* Operators that no official case covers: random ones by the statistics of what they give, the
 * others by their formula. The models are text (assemble.h), run by the reference interpreter. */
#include "unit.h"

#include <math.h>
#include <stdio.h>

#include "assemble.h"
#include "interp/interp.h"
#include "onnx/file/model.h"
#include "onnx/import.h"

enum { COUNT = 40000 };

/* Imports the model, runs it on the input (none: NULL) and gives its output, in arena. A dimension
 * N of it is 1 to 9. */
static Tensor run_model(const char *text, const Tensor *input, Arena *arena) {
  DimFlag n = {.name = SV("N"), .lo = 1, .hi = 9};
  ImportOptions options = {
      .method = SV("forward"), .dims = &n, .dim_count = strstr(text, "[N") || strstr(text, ",N")};
  StrBuf bytes = {0}, error = {0};
  if (!onnx_assemble(sv_from(text), &bytes, &error))
    fail_msg("%s", strbuf_cstr(&error));
  Capture c;
  Context ctx;
  OnnxModel model;
  Graph *g = NULL;
  Tensor output = {0};
  capture_init(&c);
  context_init(&ctx, &c.sink);
  if (onnx_model_open_bytes(&model, &c.sink, "m", (const uint8_t *)bytes.data, bytes.size) !=
          STATUS_OK ||
      onnx_import(&ctx, &model, &options, &g) != STATUS_OK ||
      interp_run(g, input, input ? 1 : 0, arena, &output) != STATUS_OK)
    fail_msg("%s", strbuf_cstr(&c.text));
  graph_free(g);
  onnx_model_close(&model);
  context_release(&ctx);
  capture_release(&c);
  strbuf_release(&bytes);
  strbuf_release(&error);
  return output;
}

typedef struct Moments {
  double mean, deviation, lowest, highest;
} Moments;

static Moments moments_of(const Tensor *t) {
  int64_t n = tensor_numel(t);
  Moments m = {0, 0, tensor_load(t, 0), tensor_load(t, 0)};
  for (int64_t i = 0; i < n; i++) {
    double x = tensor_load(t, i);
    m.mean += x / (double)n;
    m.lowest = fmin(m.lowest, x);
    m.highest = fmax(m.highest, x);
  }
  for (int64_t i = 0; i < n; i++)
    m.deviation += pow(tensor_load(t, i) - m.mean, 2) / (double)n;
  m.deviation = sqrt(m.deviation);
  return m;
}

static void assert_near(double value, double expected, double tolerance) {
  if (!(fabs(value - expected) <= tolerance))
    fail_msg("%g is not within %g of %g", value, tolerance, expected);
}

/* Uniform in [-2, 6): mean 2, deviation 8 / sqrt(12). */
static void check_uniform(const Tensor *t, DType dtype) {
  Moments m = moments_of(t);
  assert_int_equal(t->dtype, dtype);
  assert_int_equal(tensor_numel(t), COUNT);
  assert_true(m.lowest >= -2 && m.lowest < -1.9 && m.highest <= 6 && m.highest > 5.9);
  assert_near(m.mean, 2, 0.1);
  assert_near(m.deviation, 8 / sqrt(12), 0.1);
}

static void check_normal(const Tensor *t, DType dtype) {
  Moments m = moments_of(t);
  assert_int_equal(t->dtype, dtype);
  assert_int_equal(tensor_numel(t), COUNT);
  assert_near(m.mean, 5, 0.1);
  assert_near(m.deviation, 3, 0.1);
  assert_true(m.lowest < -3 && m.highest > 13); /* tails */
}

static Tensor filled(Arena *arena, DType dtype, int64_t rows, int64_t columns) {
  Tensor t = {.dtype = dtype, .rank = 2, .dims = {rows, columns}};
  t.capacity = tensor_bytes(&t);
  t.data = arena_alloc(arena, t.capacity);
  for (int64_t i = 0; i < rows * columns; i++)
    tensor_store(&t, i, (double)i);
  return t;
}

static void test_random(void **state) {
  (void)state;
  Arena arena = {0};
  Tensor like = filled(&arena, DTYPE_I32, 200, 200);
  Tensor t = run_model("node n RandomUniform -> y shape=is:200,200 low=f:-2 high=f:6\nout y float",
                       NULL, &arena);
  check_uniform(&t, DTYPE_F32);
  t = run_model("node n RandomUniform -> y shape=is:40000 low=f:-2 high=f:6 dtype=i:11\n"
                "out y double",
                NULL, &arena);
  check_uniform(&t, DTYPE_F64);
  t = run_model("in x int32[200,200]\nnode n RandomUniformLike x -> y low=f:-2 high=f:6 dtype=i:1\n"
                "out y float",
                &like, &arena);
  check_uniform(&t, DTYPE_F32);
  t = run_model("node n RandomNormal -> y shape=is:200,200 mean=f:5 scale=f:3\nout y float", NULL,
                &arena);
  check_normal(&t, DTYPE_F32);
  t = run_model("in x int32[200,200]\nnode n RandomNormalLike x -> y mean=f:5 scale=f:3 dtype=i:1\n"
                "out y float",
                &like, &arena);
  check_normal(&t, DTYPE_F32);
  arena_release(&arena);
}

/* Rows of logarithms of (1/8, 5/8, 2/8) and (0, 1, 0): how often each class is drawn. */
static void test_multinomial(void **state) {
  (void)state;
  static const double shares[2][3] = {{0.125, 0.625, 0.25}, {0, 1, 0}};
  Arena arena = {0};
  Tensor x = filled(&arena, DTYPE_F32, 2, 3);
  for (int64_t i = 0; i < 6; i++) /* unnormalised: 3 is added to all */
    tensor_store(&x, i, shares[i / 3][i % 3] > 0 ? log(shares[i / 3][i % 3]) + 3 : -100);
  Tensor y = run_model("in x float[2,3]\nnode n Multinomial x -> y sample_size=i:40000 dtype=i:7\n"
                       "out y int64",
                       &x, &arena);
  assert_int_equal(y.dtype, DTYPE_I64);
  assert_int_equal(y.dims[0], 2);
  assert_int_equal(y.dims[1], COUNT);
  double seen[2][3] = {{0}};
  for (int64_t i = 0; i < 2 * COUNT; i++) {
    int64_t drawn = tensor_load_int(&y, i);
    assert_true(drawn >= 0 && drawn < 3);
    seen[i / COUNT][drawn] += 1.0 / COUNT;
  }
  for (int i = 0; i < 6; i++)
    assert_near(seen[i / 3][i % 3], shares[i / 3][i % 3], 0.02);
  arena_release(&arena);
}

/* (sum |x|^p)^(1/p) over all but the first two dims. */
static void test_global_lp_pool(void **state) {
  (void)state;
  static const struct {
    const char *model;
    double p;
  } cases[] = {
      {"in x float[2,3]\nnode r Reshape x s -> v\ninit s int64[4] =1,2,3,1\n"
       "node n GlobalLpPool v -> y p=i:3\nout y float",
       3},
      {"in x float[2,3]\nnode r Reshape x s -> v\ninit s int64[3] =1,2,3\n"
       "node n GlobalLpPool v -> y\nout y float",
       2},
      {"in x float[2,3]\nnode r Reshape x s -> v\ninit s int64[3] =1,2,3\n"
       "node n GlobalLpPool v -> y p=i:1\nout y float",
       1},
  };
  Arena arena = {0};
  for (size_t k = 0; k < COUNT_OF(cases); k++) {
    Tensor x = filled(&arena, DTYPE_F32, 2, 3);
    tensor_store(&x, 1, -1.5);
    tensor_store(&x, 4, -4.5);
    Tensor y = run_model(cases[k].model, &x, &arena);
    assert_int_equal(tensor_numel(&y), 2);
    for (int64_t row = 0; row < 2; row++) {
      double sum = 0;
      for (int64_t i = 0; i < 3; i++)
        sum += pow(fabs(tensor_load(&x, row * 3 + i)), cases[k].p);
      assert_near(tensor_load(&y, row), pow(sum, 1 / cases[k].p), 1e-5);
    }
  }
  arena_release(&arena);
}

/* Entry k of the transform of x [n], real, or with two parts each; inverse: by n. */
static void transformed(const double *x, int n, bool complex, bool inverse, int k, double *y) {
  y[0] = y[1] = 0;
  for (int i = 0; i < n; i++) {
    double re = complex ? x[2 * i] : x[i], im = complex ? x[2 * i + 1] : 0,
           angle = (inverse ? 2 : -2) * M_PI * i * k / n;
    y[0] += (re * cos(angle) - im * sin(angle)) / (inverse ? n : 1);
    y[1] += (re * sin(angle) + im * cos(angle)) / (inverse ? n : 1);
  }
}

/* Over a dimension whose size arrives with the input: the matrix is computed then. */
static void test_transform_of_dynamic_length(void **state) {
  (void)state;
  static const struct {
    const char *model;
    bool complex, inverse, onesided;
  } cases[] = {
      {"in x float[1,N,1]\nnode n DFT x -> y axis=i:1\nout y float", false, false, false},
      {"in x float[1,N,1]\nnode n DFT x -> y axis=i:1 onesided=i:1\nout y float", false, false,
       true},
      {"in x float[1,N,2]\nnode n DFT x -> y axis=i:1\nout y float", true, false, false},
      {"in x float[1,N,2]\nnode n DFT x -> y axis=i:1 inverse=i:1\nout y float", true, true, false},
      {"in x float[1,N,1]\nnode n DFT x -> y axis=i:1 inverse=i:1\nout y float", false, true,
       false},
  };
  Arena arena = {0};
  for (size_t c = 0; c < COUNT_OF(cases); c++)
    for (int n = 1; n <= 9; n++) {
      int parts = cases[c].complex ? 2 : 1, results = cases[c].onesided ? n / 2 + 1 : n;
      Tensor x = filled(&arena, DTYPE_F32, n, parts);
      double values[18], want[2];
      for (int i = 0; i < n * parts; i++)
        tensor_store(&x, i, values[i] = (i * i % 7) - 2.5);
      x.rank = 3;
      memcpy(x.dims, ((int64_t[]){1, n, parts}), 3 * sizeof *x.dims);
      Tensor y = run_model(cases[c].model, &x, &arena);
      assert_int_equal(y.rank, 3);
      assert_int_equal(y.dims[1], results);
      assert_int_equal(y.dims[2], 2);
      for (int k = 0; k < results; k++) {
        transformed(values, n, cases[c].complex, cases[c].inverse, k, want);
        assert_near(tensor_load(&y, 2 * k), want[0], 1e-4);
        assert_near(tensor_load(&y, 2 * k + 1), want[1], 1e-4);
      }
    }
  arena_release(&arena);
}

/* What sequences hold and how many, operators of early versions, activations of recurrent ones. */
static const struct {
  const char *model;
  int count;
  double values[12];
} by_value[] = {
    {"in x float[2,3]\nnode c SequenceConstruct x x x -> s\nnode n SequenceLength s -> y\n"
     "out y int64",
     1,
     {3}},
    {"in x float[2,3]\nnode e SequenceEmpty -> z\nnode n SequenceLength z -> y\nout y int64",
     1,
     {0}},
    {"in x float[2,3]\nnode m Neg x -> u\nnode c SequenceConstruct x u x -> s\n"
     "init p int64[] =1\nnode r SequenceErase s p -> t\nnode q SequenceLength t -> y\nout y "
     "int64",
     1,
     {2}},
    {"in x float[2,3]\nnode m Neg x -> u\nnode c SequenceConstruct x u -> s\n"
     "node r SequenceErase s -> t\ninit p int64[] =-1\nnode q SequenceAt t p -> y\nout y float",
     6,
     {0, 1, 2, 3, 4, 5}},
    {"in x float[2,3]\nnode m Neg x -> u\nnode c SequenceConstruct x u -> s\n"
     "init p int64[] =-2\nnode r SequenceErase s p -> t\ninit z int64[] =0\n"
     "node q SequenceAt t z -> y\nout y float",
     6,
     {0, -1, -2, -3, -4, -5}},
    {"in x float[2,3]\nnode m Neg x -> u\nnode c SequenceConstruct x u -> s\n"
     "init p int64[] =0\nnode r SequenceInsert s u p -> t\nnode q SequenceAt t p -> y\nout y "
     "float",
     6,
     {0, -1, -2, -3, -4, -5}},
    {"in x float[2,3]\nnode m Neg x -> u\nnode c SequenceConstruct x u -> s\n"
     "node r SequenceInsert s u -> t\ninit p int64[] =2\nnode q SequenceAt t p -> y\nout y float",
     6,
     {0, -1, -2, -3, -4, -5}},
    {"in x float[2,3]\nnode m Neg x -> u\nnode c SequenceConstruct x u -> s\n"
     "node q ConcatFromSequence s -> y axis=i:1\nout y float",
     12,
     {0, 1, 2, 0, -1, -2, 3, 4, 5, -3, -4, -5}},
    {"in x float[2,3]\nnode m Neg x -> u\nnode c SequenceConstruct x u -> s\n"
     "node q ConcatFromSequence s -> y axis=i:-1 new_axis=i:1\nout y float",
     12,
     {0, 0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5}},
    {"in x float[2,3]\ninit p int64[2] =1,2\nnode c SplitToSequence x p -> s axis=i:1\n"
     "init z int64[] =1\nnode q SequenceAt s z -> y\nout y float",
     4,
     {1, 2, 4, 5}},
    {"in x float[2,3]\ninit p int64[] =2\nnode c SplitToSequence x p -> s axis=i:1\n"
     "init z int64[] =1\nnode q SequenceAt s z -> y\nout y float",
     2,
     {2, 5}},
    {"in x float[2,3]\nnode c SplitToSequence x -> s keepdims=i:0\n"
     "init z int64[] =1\nnode q SequenceAt s z -> y\nout y float",
     3,
     {3, 4, 5}},
    {"in x float[2,3]\nnode c Optional x -> o\nnode h OptionalHasElement o -> y\nout y bool",
     1,
     {1}},
    {"in x float[2,3]\nnode c Optional x -> o\nnode h OptionalGetElement o -> y\nout y float",
     6,
     {0, 1, 2, 3, 4, 5}},
    {"opset 1\nin x float[2,3]\ninit n int64[] =2\ninit a int64[] =1\nnode t Tile x n a -> y\n"
     "out y float",
     12,
     {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}},
    {"opset 24\nin x float[2,3]\nnode n Swish x -> y alpha=f:2\nout y float",
     6,
     {0, 0.8807971, 1.9640276, 2.9925821, 3.9986586, 4.9997730}},
    {"in x float[2,3]\nnode c Cast x -> u to=i:7\nnode n TfIdfVectorizer u -> y mode=s:TFIDF "
     "min_gram_length=i:1 max_gram_length=i:1 max_skip_count=i:0 ngram_counts=is:0 "
     "ngram_indexes=is:0,1,2 pool_int64s=is:1,4,5 weights=fs:2,3,4\nout y float",
     6,
     {2, 0, 0, 0, 3, 4}},
    {"in x float[2,3]\ninit m float[] =2\nnode d Mod x m -> r fmod=i:1\nnode c Cast r -> u "
     "to=i:7\nnode n TfIdfVectorizer u -> y mode=s:IDF min_gram_length=i:1 max_gram_length=i:1 "
     "max_skip_count=i:0 ngram_counts=is:0 ngram_indexes=is:0,1 pool_int64s=is:0,1 "
     "weights=fs:2,3\nout y float",
     4,
     {2, 3, 2, 3}},
    {"in x float[2,3]\ninit d int64[3] =6,1,1\nnode v Reshape x d -> s\ninit w float[1,1,1] "
     "=1\ninit r float[1,1,1] =0\n"
     "node n RNN s w r -> y hidden_size=i:1 activations=ss:Relu\nout y float",
     6,
     {0, 1, 2, 3, 4, 5}},
    {"in x float[2,3]\ninit d int64[3] =6,1,1\nnode v Reshape x d -> s\ninit w float[1,1,1] "
     "=-1\ninit r float[1,1,1] =0\n"
     "node n RNN s w r -> y hidden_size=i:1 activations=ss:Relu\nout y float",
     6,
     {0, 0, 0, 0, 0, 0}},
    {"in x float[2,3]\ninit d int64[3] =6,1,1\nnode v Reshape x d -> s\ninit w float[1,1,1] "
     "=1\ninit r float[1,1,1] =0\n"
     "node n RNN s w r -> y hidden_size=i:1 activations=ss:Softplus\nout y float",
     6,
     {0.6931472, 1.3132617, 2.1269280, 3.0485874, 4.0181499, 5.0067153}},
    {"in x float[2,3]\ninit d int64[3] =6,1,1\nnode v Reshape x d -> s\ninit w float[1,1,1] "
     "=1\ninit r float[1,1,1] =0\n"
     "node n RNN s w r -> y hidden_size=i:1 activations=ss:Affine activation_alpha=fs:2 "
     "activation_beta=fs:1\nout y float",
     6,
     {1, 3, 5, 7, 9, 11}},
    {"in x float[2,3]\ninit d int64[3] =6,1,1\nnode v Reshape x d -> s\ninit w float[1,1,1] "
     "=1\ninit r float[1,1,1] =0\n"
     "node n RNN s w r -> y hidden_size=i:1 activations=ss:ThresholdedRelu "
     "activation_alpha=fs:2\nout y float",
     6,
     {0, 0, 2, 3, 4, 5}},
    {"in x float[2,3]\ninit d int64[3] =6,1,1\nnode v Reshape x d -> s\ninit w float[1,1,1] "
     "=-1\ninit r float[1,1,1] =0\n"
     "node n RNN s w r -> y hidden_size=i:1 activations=ss:LeakyRelu "
     "activation_alpha=fs:0.5\nout y float",
     6,
     {0, -0.5, -1, -1.5, -2, -2.5}},
    {"in x float[2,3]\ninit d int64[3] =6,1,1\nnode v Reshape x d -> s\ninit w float[1,1,1] "
     "=1\ninit r float[1,1,1] =0\n"
     "node n RNN s w r -> y hidden_size=i:1 activations=ss:ScaledTanh activation_alpha=fs:2 "
     "activation_beta=fs:0.5\nout y float",
     6,
     {0, 0.9242343, 1.5231883, 1.8102968, 1.9280552, 1.9732286}},
    {"in x float[2,3]\ninit d int64[3] =6,1,1\nnode v Reshape x d -> s\ninit w float[1,1,1] "
     "=1\ninit r float[1,1,1] =0\n"
     "node n RNN s w r -> y hidden_size=i:1 activations=ss:HardSigmoid activation_alpha=fs:0.25 "
     "activation_beta=fs:0.25\nout y float",
     6,
     {0.25, 0.5, 0.75, 1, 1, 1}},
    {"in x float[2,3]\ninit d int64[3] =6,1,1\nnode v Reshape x d -> s\ninit w float[1,1,1] "
     "=-1\ninit r float[1,1,1] =0\n"
     "node n RNN s w r -> y hidden_size=i:1 activations=ss:Elu activation_alpha=fs:2\nout y "
     "float",
     6,
     {0, -1.2642411, -1.7293294, -1.9004259, -1.9633687, -1.9865241}},
    {"in x float[2,3]\ninit d int64[3] =6,1,1\nnode v Reshape x d -> s\ninit w float[1,1,1] "
     "=-1\ninit r float[1,1,1] =0\n"
     "node n RNN s w r -> y hidden_size=i:1 activations=ss:Softsign\nout y float",
     6,
     {0, -0.5, -0.6666667, -0.75, -0.8, -0.8333333}},
};

static void test_by_value(void **state) {
  (void)state;
  Arena arena = {0};
  for (size_t c = 0; c < COUNT_OF(by_value); c++) {
    Tensor x = filled(&arena, DTYPE_F32, 2, 3), y = run_model(by_value[c].model, &x, &arena);
    assert_int_equal(tensor_numel(&y), by_value[c].count);
    for (int i = 0; i < by_value[c].count; i++)
      if (!(fabs(tensor_load(&y, i) - by_value[c].values[i]) <= 1e-5))
        fail_msg("case %zu: element %d is %g, not %g", c, i, tensor_load(&y, i),
                 by_value[c].values[i]);
  }
  arena_release(&arena);
}

/* Loops without a count: how often they run follows from the condition, a comparison of a counter
 * with 3 in either order, or what is not one. */
static void test_conditions(void **state) {
  (void)state;
  static const struct {
    const char *comparison;
    bool negated;
    int steps; /* from 0, by ones; the counter is compared after it was increased */
  } cases[] = {
      {"Less e three", false, 3},       {"LessOrEqual e three", false, 4},
      {"Greater three e", false, 3},    {"GreaterOrEqual three e", false, 4},
      {"Greater e three", true, 4},     {"GreaterOrEqual e three", true, 3},
      {"Less three e", true, 4},        {"LessOrEqual three e", true, 3},
      {"Equal e three", true, 3},       {"Equal three e", true, 3},
      {"Greater e three", false, 1},    {"Less e three", true, 1},
      {"LessOrEqual e three", true, 1},
  };
  Arena arena = {0};
  for (size_t c = 0; c < COUNT_OF(cases); c++) {
    char model[1024];
    snprintf(
        model, sizeof model,
        "in x float[2,3]\ninit k int64[] =0\ninit one int64[] =1\ninit three int64[] =3\n"
        "init f float[] =1\ninit go bool[] =1\ngraph b\nin i int64[]\nin d bool[]\n"
        "in c int64[]\nin s float[2,3]\nnode a Add c one -> e\nnode g %s -> h\nnode n %s h -> o\n"
        "node t Add s f -> u\nout o bool[]\nout e int64[]\nout u float[2,3]\nend\n"
        "node l Loop \"\" go k x -> z y body=g:b\nout y float",
        cases[c].comparison, cases[c].negated ? "Not" : "Identity");
    Tensor x = filled(&arena, DTYPE_F32, 2, 3), y = run_model(model, &x, &arena);
    for (int i = 0; i < 6; i++)
      assert_near(tensor_load(&y, i), i + cases[c].steps, 0);
  }
  arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random),         cmocka_unit_test(test_multinomial),
      cmocka_unit_test(test_global_lp_pool), cmocka_unit_test(test_transform_of_dynamic_length),
      cmocka_unit_test(test_by_value),       cmocka_unit_test(test_conditions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
