#include "ops/cpu/onednn.h"

#include <atomic>
#include <climits>
#include <mutex>

#include "core/check.h"
#include "core/storage.h"

namespace crucible::cpu::onednn {
namespace {

// Leaked on purpose: cached calls of other threads may outlive static objects.
const dnnl::engine& engine() {
  static const auto* instance = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *instance;
}

dnnl_stream_t stream() {
  thread_local dnnl::stream instance(engine());
  return instance.get();
}

dnnl::memory::data_type type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return dnnl::memory::data_type::f32;
    case DType::bf16:
      return dnnl::memory::data_type::bf16;
    case DType::f16:
      return dnnl::memory::data_type::f16;
    default:
      fail<DeviceError>("onednn: {} has no data type here.", name_of(dtype));
  }
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

bool is_given(const Desc& desc) {
  return desc.get_size() > 0;
}

Dims minus_one(Dims dims) {  // oneDNN counts the pixels between taps
  for (auto& d : dims) --d;
  return dims;
}

// Runs `make`; what oneDNN does not implement is an unusable plan, everything else an error.
template <class Make>
Plan plan_or_nothing(Make&& make) {
  try {
    return make();
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_unimplemented || e.status == dnnl_invalid_arguments) return {};
    throw;
  }
}

template <class P, class PD>
Call call_of(const PD& pd, std::vector<Call::Argument> arguments) {
  return Call(P(pd), std::move(arguments), pd.scratchpad_desc(), pd.impl_info_str());
}

}  // namespace

Desc strided(const Dims& dims, DType dtype, const Dims& strides) {
  return Desc(dims, type_of(dtype), strides);
}

Desc any_layout(const Dims& dims, DType dtype) {
  return Desc(dims, type_of(dtype), dnnl::memory::format_tag::any);
}

int64_t bytes_of(const Desc& desc) {
  return static_cast<int64_t>(desc.get_size());
}

Call::Call(dnnl::primitive primitive, std::vector<Argument> arguments, const Desc& scratchpad,
           std::string implementation)
    : primitive_(std::move(primitive)),
      scratchpad_bytes_(bytes_of(scratchpad)),
      implementation_(std::move(implementation)) {
  if (scratchpad_bytes_ > 0) arguments.push_back({DNNL_ARG_SCRATCHPAD, scratchpad});
  for (const Argument& a : arguments) {
    memories_.emplace_back(a.desc, engine(), static_cast<void*>(nullptr));
    arguments_.push_back({a.name, memories_.back().get()});
  }
}

void Call::run(Allocator& allocator, std::span<const void* const> data) {
  for (size_t i = 0; i < data.size(); ++i) {
    memories_[i].set_data_handle(const_cast<void*>(data[i]));  // inputs are only read
  }
  const auto execute = [&] {
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(primitive_.get(), stream(), static_cast<int>(arguments_.size()),
                               arguments_.data()),
        "could not execute a primitive");
  };
  if (scratchpad_bytes_ == 0) return execute();
  const Workspace scratchpad(allocator, scratchpad_bytes_);
  memories_.back().set_data_handle(scratchpad.data());
  execute();
}

Call reorder(const Desc& from, const Desc& to) {
  const dnnl::reorder::primitive_desc pd(engine(), from, engine(), to, attributes());
  return call_of<dnnl::reorder>(pd, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

namespace {

// What 2.x wraps in an operation descriptor, 3.x takes directly.
template <class P, class... Args>
typename P::primitive_desc describe(const Args&... args) {
#if DNNL_VERSION_MAJOR >= 3
  return typename P::primitive_desc(engine(), args..., attributes());
#else
  return typename P::primitive_desc(typename P::desc(args...), attributes(), engine());
#endif
}

template <class P, class Hint, class... Args>
typename P::primitive_desc describe_backward(const Hint& hint, const Args&... args) {
#if DNNL_VERSION_MAJOR >= 3
  return typename P::primitive_desc(engine(), args..., hint, attributes());
#else
  return typename P::primitive_desc(typename P::desc(args...), attributes(), engine(), hint);
#endif
}

constexpr auto direct = dnnl::algorithm::convolution_direct;

dnnl::convolution_forward::primitive_desc describe_forward(const Desc& x, const Desc& w,
                                                           const Desc& bias, const Desc& y,
                                                           const Geometry& g) {
  constexpr auto kind = dnnl::prop_kind::forward_training;
  const Dims dilation = minus_one(g.dilation);
  return is_given(bias) ? describe<dnnl::convolution_forward>(kind, direct, x, w, bias, y, g.stride,
                                                              dilation, g.padding, g.padding)
                        : describe<dnnl::convolution_forward>(kind, direct, x, w, y, g.stride,
                                                              dilation, g.padding, g.padding);
}

}  // namespace

Plan matmul(const Desc& a, const Desc& b, const Desc& bias, const Desc& y) {
  return plan_or_nothing([&]() -> Plan {
    const auto pd =
        is_given(bias) ? describe<dnnl::matmul>(a, b, bias, y) : describe<dnnl::matmul>(a, b, y);
    std::vector<Call::Argument> arguments{
        {DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, pd.weights_desc()}, {DNNL_ARG_DST, y}};
    if (is_given(bias)) arguments.push_back({DNNL_ARG_BIAS, bias});
    return {call_of<dnnl::matmul>(pd, std::move(arguments)), pd.weights_desc()};
  });
}

Plan convolution(const Desc& x, const Desc& w, const Desc& bias, const Desc& y, const Geometry& g) {
  return plan_or_nothing([&]() -> Plan {
    const auto pd = describe_forward(x, w, bias, y, g);
    std::vector<Call::Argument> arguments{
        {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, pd.weights_desc()}, {DNNL_ARG_DST, y}};
    if (is_given(bias)) arguments.push_back({DNNL_ARG_BIAS, bias});
    return {call_of<dnnl::convolution_forward>(pd, std::move(arguments)), pd.weights_desc()};
  });
}

Plan convolution_data_gradient(const Desc& dy, const Desc& w, const Desc& dx, const Geometry& g) {
  return plan_or_nothing([&]() -> Plan {
    const auto hint = describe_forward(dx, w, Desc(), dy, g);
    const auto pd = describe_backward<dnnl::convolution_backward_data>(
        hint, direct, dx, w, dy, g.stride, minus_one(g.dilation), g.padding, g.padding);
    return {call_of<dnnl::convolution_backward_data>(pd, {{DNNL_ARG_DIFF_DST, dy},
                                                          {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                                                          {DNNL_ARG_DIFF_SRC, dx}}),
            pd.weights_desc()};
  });
}

Plan convolution_filter_gradient(const Desc& x, const Desc& dy, const Desc& dw, const Geometry& g) {
  return plan_or_nothing([&]() -> Plan {
    const auto hint = describe_forward(x, dw, Desc(), dy, g);
    const auto pd = describe_backward<dnnl::convolution_backward_weights>(
        hint, direct, x, dw, dy, g.stride, minus_one(g.dilation), g.padding, g.padding);
    return {call_of<dnnl::convolution_backward_weights>(
                pd, {{DNNL_ARG_SRC, x},
                     {DNNL_ARG_DIFF_DST, dy},
                     {DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc()}}),
            pd.diff_weights_desc()};
  });
}

// ---- Packed weights -------------------------------------------------------------------------

namespace {

std::atomic<int64_t> packs = 0;
std::mutex packing;  // held while a copy is looked up or made; packing itself is parallel

// The copies of one storage, beside it.
struct Copies {
  struct Copy {
    const void* source;  // also tells apart views, and storage that moved
    Desc own, wanted;
    uint64_t version;
    std::shared_ptr<Workspace> block;
    Call reorder;
    uint64_t used;
  };
  struct Uses {
    const void* source;
    int variant;
    uint64_t version;
    int count;
  };
  std::vector<Copy> list;
  std::vector<Uses> uses;
  uint64_t clock = 0;
  int64_t bytes = 0;

  // Makes room: together the copies may take `limit` bytes.
  void make_room(int64_t more, int64_t limit) {
    while (!list.empty() && bytes + more > limit) {
      size_t oldest = 0;
      for (size_t i = 1; i < list.size(); ++i) {
        if (list[i].used < list[oldest].used) oldest = i;
      }
      bytes -= bytes_of(list[oldest].wanted);
      list.erase(list.begin() + oldest);
    }
  }
};

Copies& copies_of(Storage& storage) {
  if (!storage.derived()) storage.derived() = std::make_shared<Copies>();
  return *static_cast<Copies*>(storage.derived().get());
}

}  // namespace

PackedWeights::PackedWeights(const Tensor& w, const Desc& own, const Desc& wanted,
                             Allocator& allocator)
    : data_(w.raw_data()) {
  if (own == wanted) return;
  Storage& storage = *w.storage();
  if (storage.tag() != MemoryTag::parameters) {
    block_ = std::make_shared<Workspace>(allocator, bytes_of(wanted));
    reorder(own, wanted).run(allocator, {data_, block_->data()});
    packs.fetch_add(1, std::memory_order_relaxed);
    data_ = block_->data();
    return;
  }
  const std::lock_guard lock(packing);
  Copies& copies = copies_of(storage);
  Copies::Copy* copy = nullptr;
  for (auto& c : copies.list) {
    if (c.source == data_ && c.wanted == wanted && c.own == own) {
      copy = &c;
      break;
    }
  }
  if (!copy) {
    copies.make_room(bytes_of(wanted), 4 * (storage.bytes() + 4096));
    copies.list.push_back({.source = data_,
                           .own = own,
                           .wanted = wanted,
                           .version = ~storage.version(),
                           .block = std::make_shared<Workspace>(allocator, bytes_of(wanted)),
                           .reorder = reorder(own, wanted)});
    copy = &copies.list.back();
    copies.bytes += bytes_of(wanted);
  }
  copy->used = ++copies.clock;
  if (copy->version != storage.version()) {
    copy->reorder.run(allocator, {data_, copy->block->data()});
    copy->version = storage.version();
    packs.fetch_add(1, std::memory_order_relaxed);
  }
  block_ = copy->block;
  data_ = block_->data();
}

int count_uses(const Tensor& w, int variant) {
  constexpr size_t most = 64;  // views of one storage that are told apart
  Storage& storage = *w.storage();
  const uint64_t version = storage.version();
  const std::lock_guard lock(packing);
  auto& uses = copies_of(storage).uses;
  for (auto& u : uses) {
    if (u.source != w.raw_data() || u.variant != variant) continue;
    if (u.version != version) u = {u.source, variant, version, 0};
    return u.count < INT_MAX ? ++u.count : u.count;
  }
  if (uses.size() >= most) uses.clear();
  uses.push_back({w.raw_data(), variant, version, 1});
  return 1;
}

int64_t pack_count() {
  return packs.load(std::memory_order_relaxed);
}

}  // namespace crucible::cpu::onednn
