/// The one place that names oneDNN: descriptors, prepared calls, weights in its own layouts.
///
/// Written for oneDNN 2.6; what 3.x spells differently is in onednn.cpp and nowhere else.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/allocator.h"
#include "core/primitives.h"
#include "core/tensor.h"

namespace crucible::cpu {

/// A block of workspace from the allocator of the device, so that the memory books know it.
class Workspace {
 public:
  Workspace(Allocator& allocator, int64_t bytes)
      : allocator_(&allocator), data_(allocator.allocate(bytes, MemoryTag::workspace)) {}
  ~Workspace() { allocator_->free(data_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  void* data() const { return data_; }

 private:
  Allocator* allocator_;
  void* data_;
};

/// What runs a primitive: the name that oneDNN gives its implementation, or "eigen", "unrolled"
/// or "one product" for ours.  The data of the tensors is not touched.
std::string implementation_of(const prim::Matmul& p);
std::string implementation_of(const prim::Convolution& p);
std::string implementation_of(const prim::ConvolutionDataGradient& p);
std::string implementation_of(const prim::ConvolutionFilterGradient& p);

}  // namespace crucible::cpu

namespace crucible::cpu::onednn {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

/// A dense or strided array; strides in elements.
Desc strided(const Dims& dims, DType dtype, const Dims& strides);
/// An array whose layout oneDNN may choose.
Desc any_layout(const Dims& dims, DType dtype);
int64_t bytes_of(const Desc& desc);

/// A primitive with its arguments.  Between calls only the data pointers change, so that a call
/// costs no more than oneDNN's own dispatch.  Not for two threads at once.
class Call {
 public:
  struct Argument {
    int name;  ///< DNNL_ARG_...
    Desc desc;
  };
  Call() = default;
  Call(dnnl::primitive primitive, std::vector<Argument> arguments, const Desc& scratchpad,
       std::string implementation);

  /// Whether oneDNN has the primitive, in more than its slow reference code.
  bool usable() const { return primitive_ && implementation_.find("ref") == std::string::npos; }
  const std::string& implementation() const { return implementation_; }
  /// Runs on `data`, one pointer an argument, in the order of construction.
  void run(Allocator& allocator, std::span<const void* const> data);
  void run(Allocator& allocator, std::initializer_list<const void*> data) {
    run(allocator, std::span(data.begin(), data.size()));
  }

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
  int64_t scratchpad_bytes_ = 0;
  std::string implementation_;
};

/// A product or convolution and the layout that it wants for its weights.
/// The arguments of the call, in order: product and convolution x, w, y(, bias); data gradient
/// dy, w, dx; filter gradient x, dy, dw.
struct Plan {
  Call call;
  Desc weights;
};

/// In pixels, [height, width]; dilation 1 is dense.
struct Geometry {
  Dims stride, padding, dilation;
};

/// A zero `bias` descriptor means none.  What oneDNN cannot do gives a plan that is not usable.
Plan matmul(const Desc& a, const Desc& b, const Desc& bias, const Desc& y);
Plan convolution(const Desc& x, const Desc& w, const Desc& bias, const Desc& y, const Geometry& g);
Plan convolution_data_gradient(const Desc& dy, const Desc& w, const Desc& dx, const Geometry& g);
Plan convolution_filter_gradient(const Desc& x, const Desc& dy, const Desc& dw, const Geometry& g);
/// Copies `from` to `to` across layouts (arguments: from, to).
Call reorder(const Desc& from, const Desc& to);

/// What distinguishes two plans: kind, dtype, sizes, flags.  Unused words are 0.
using Key = std::array<int64_t, 18>;
struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t h = 0;
    for (const int64_t word : key)
      h = (h ^ static_cast<uint64_t>(word)) * 0x9e3779b97f4a7c15u + (h >> 29);
    return h ^ (h >> 32);
  }
};

/// The last `capacity` plans of this thread.  One of a new shape costs some hundred microseconds.
template <class Value>
class PlanCache {
 public:
  explicit PlanCache(size_t capacity = 512) : capacity_(capacity) {}

  /// The plan of `key`; `make()` makes it at first.  Valid until the next call.
  template <class Make>
  Value& get(const Key& key, Make&& make) {
    if (const auto found = index_.find(key); found != index_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return found->second->second;
    }
    Value value = make();
    if (order_.size() >= capacity_) {
      index_.erase(order_.back().first);
      order_.pop_back();
    }
    order_.emplace_front(key, std::move(value));
    index_[key] = order_.begin();
    return order_.front().second;
  }
  size_t size() const { return order_.size(); }

 private:
  using Order = std::list<std::pair<Key, Value>>;
  size_t capacity_;
  Order order_;  // the latest used first
  std::unordered_map<Key, typename Order::iterator, KeyHash> index_;
};

/// The weights `w`, stored as `own`, in the layout `wanted`.  For parameters the copy is kept
/// beside their storage and made again only after they changed; it dies with them.  For other
/// tensors it lives as long as the result.  If the layouts are equal nothing is copied.
class PackedWeights {
 public:
  PackedWeights(const Tensor& w, const Desc& own, const Desc& wanted, Allocator& allocator);
  const void* data() const { return data_; }

 private:
  std::shared_ptr<Workspace> block_;
  const void* data_;
};

/// How often this has been asked of the parameters `w` and this `variant` since they last changed,
/// this time included.
int count_uses(const Tensor& w, int variant);

/// How often weights were copied to another layout so far; for tests.
int64_t pack_count();

}  // namespace crucible::cpu::onednn
