#include "core/parameters.h"

#include "core/autograd.h"
#include "core/backend.h"
#include "core/check.h"
#include "core/storage.h"

namespace crucible {
namespace {

constexpr int64_t alignment_bytes = 64;

void initialise(const Tensor& t, const Init& init, uint64_t seed, uint64_t stream) {
  if (init.kind == Init::Kind::constant) {
    run(prim::Fill{.value = init.a, .y = t});
    return;
  }
  const bool normal = init.kind == Init::Kind::normal;
  run(prim::Random{.kind = normal ? prim::Random::Kind::normal : prim::Random::Kind::uniform,
                   .a = init.a,
                   .b = init.b,
                   .rng = {seed, stream, 0},
                   .y = t});
}

}  // namespace

void ParameterSet::claim(const std::string& name) {
  check(!name.empty(), "parameters: a name is empty; every parameter needs one.");
  check(names_.insert(name).second, "parameters: the name '{}' is taken; names are unique.", name);
}

Tensor ParameterSet::add(const std::string& name, const Shape& shape, const Init& init,
                         const ParameterOptions& options) {
  check(!packed(), "parameters: '{}' comes after pack(); add all parameters first.", name);
  claim(name);
  const MemoryTagScope tag(MemoryTag::parameters);
  Tensor tensor = Tensor::empty(shape, dtype_, device_);
  initialise(tensor, init, seed_, parameters_.size() + 1);
  tensor.set_requires_grad();
  parameters_.push_back({{name, tensor, options.layout}, options.decay, 0});
  return tensor;
}

Tensor ParameterSet::add_buffer(const std::string& name, const Shape& shape, double value) {
  claim(name);
  const MemoryTagScope tag(MemoryTag::parameters);
  const Tensor tensor = Tensor::full(shape, value, dtype_, device_);
  buffers_.push_back({name, tensor});
  return tensor;
}

std::vector<NamedTensor> ParameterSet::state() const {
  std::vector<NamedTensor> all(parameters_.begin(), parameters_.end());
  all.insert(all.end(), buffers_.begin(), buffers_.end());
  return all;
}

int64_t ParameterSet::count() const {
  int64_t n = 0;
  for (const Parameter& p : parameters_) n += p.tensor.numel();
  return n;
}

void ParameterSet::pack() {
  if (packed()) return;
  const int64_t step = alignment_bytes / size_of(dtype_);
  int64_t total = 0;
  for (const bool decay : {true, false}) {
    for (Parameter& p : parameters_) {
      if (p.decay != decay) continue;
      p.arena_offset = total;
      total += (p.tensor.numel() + step - 1) / step * step;
    }
    if (decay) decayed_elements_ = total;
  }
  {
    const MemoryTagScope tag(MemoryTag::parameters);
    values_ = Tensor::zeros({total}, dtype_, device_);
  }
  {
    const MemoryTagScope tag(MemoryTag::gradients);
    gradients_ = Tensor::zeros({total}, dtype_, device_);
  }
  for (const Parameter& p : parameters_) {
    const Tensor& t = p.tensor;
    run(prim::Copy{.x = t, .y = values_.as_strided(t.shape(), t.strides(), p.arena_offset)});
    t.storage()->move_into(values_.storage(), p.arena_offset * size_of(dtype_));
    t.node()->arena_slot = gradients_.as_strided(t.shape(), t.strides(), p.arena_offset);
    if (t.grad().defined()) {
      run(prim::Copy{.x = t.grad(), .y = t.node()->arena_slot});
      t.node()->grad = t.node()->arena_slot;
    }
  }
}

void ParameterSet::keep_narrow_copy(DType dtype) {
  check(dtype_ == DType::f32 && (dtype == DType::f16 || dtype == DType::bf16),
        "keep_narrow_copy: a {} copy of {} parameters; only f16 and bf16 copies of f32 are kept.",
        name_of(dtype), name_of(dtype_));
  pack();
  const MemoryTagScope tag(MemoryTag::parameters);
  const auto narrow = std::make_shared<NarrowCopy>();
  narrow->values = values_;
  narrow->copy = Tensor::empty(values_.shape(), dtype, device_);
  for (const Parameter& p : parameters_) {
    // A storage of its own, so that a backend can keep what it derives from this parameter.
    Tensor part = Tensor::empty(p.tensor.shape(), dtype, device_);
    part.storage()->move_into(narrow->copy.storage(), p.arena_offset * size_of(dtype));
    p.tensor.node()->narrow_copy = narrow;
    p.tensor.node()->narrow = part;
  }
}

void ParameterSet::zero_grad() {
  for (const Parameter& p : parameters_) p.tensor.zero_grad();
}

void ParameterSet::complete_gradients() {
  pack();
  for (const Parameter& p : parameters_) {
    Node& leaf = *p.tensor.node();
    if (leaf.grad.defined()) continue;
    run(prim::Fill{.value = 0.0, .y = leaf.arena_slot});
    leaf.grad = leaf.arena_slot;
  }
}

}  // namespace crucible
