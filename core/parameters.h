/// The parameters of a model: named, initialised, and kept in one flat arena.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/named_tensor.h"
#include "core/rng.h"
#include "core/tensor.h"

namespace crucible {

/// How a parameter starts.  Random ones read a stream of their own under the set's seed.
struct Init {
  enum class Kind : uint8_t { constant, uniform, normal };
  Kind kind = Kind::constant;
  double a = 0.0;
  double b = 0.0;

  static Init constant(double value) { return {Kind::constant, value, 0.0}; }
  static Init uniform(double low, double high) { return {Kind::uniform, low, high}; }
  static Init normal(double mean, double deviation) { return {Kind::normal, mean, deviation}; }
};

struct ParameterOptions {
  bool decay = true;  ///< Whether weight decay applies; not to biases and norm gains.
  ExportLayout layout = ExportLayout::as_is;
};

struct Parameter : NamedTensor {
  bool decay = true;
  int64_t arena_offset = 0;  ///< In elements, once packed.
};

/// Every parameter and buffer of a model, in order of creation.  A parameter cannot exist without a
/// name nor be forgotten by the optimizer.
///
/// pack() moves all parameters into one flat tensor and their gradients into another, those with
/// weight decay first, so that an update, a norm or an all-reduce is one pass over contiguous
/// memory.  Each parameter starts at a multiple of 64 bytes; the gaps are and stay 0.
class ParameterSet {
 public:
  explicit ParameterSet(Device device = Device::cpu(), uint64_t seed = 0, DType dtype = DType::f32)
      : device_(device), dtype_(dtype), seed_(seed), rng_{seed, dropout_stream, 0} {}
  ParameterSet(const ParameterSet&) = delete;
  ParameterSet& operator=(const ParameterSet&) = delete;

  /// A new leaf.
  /// Throws    InvalidArgument if the name is empty or taken, or the set is packed.
  Tensor add(const std::string& name, const Shape& shape, const Init& init,
             const ParameterOptions& options = {});
  /// A tensor that is saved but not trained, filled with `value`.
  Tensor add_buffer(const std::string& name, const Shape& shape, double value);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<NamedTensor>& buffers() const { return buffers_; }
  /// Parameters, then buffers: what a file of weights holds.
  std::vector<NamedTensor> state() const;
  /// Number of trained numbers.
  int64_t count() const;

  Device device() const { return device_; }
  DType dtype() const { return dtype_; }
  uint64_t seed() const { return seed_; }

  /// Idempotent.  Call it before the first forward: earlier graphs would see the old memory.
  void pack();
  bool packed() const { return values_.defined(); }
  const Tensor& values() const { return values_; }        ///< Flat; packs are complete.
  const Tensor& gradients() const { return gradients_; }  ///< Flat, as values().
  /// The first so many elements of the arena have weight decay, the rest has none.
  int64_t decayed_elements() const { return decayed_elements_; }

  /// Keeps a copy of the arena in `dtype` (f16 or bf16) that autocast products read; it is made
  /// anew when the arena has changed.  Packs the set.
  /// Throws    InvalidArgument if the parameters are not f32 or `dtype` is not of 16 bits.
  void keep_narrow_copy(DType dtype);

  /// Forgets all gradients; nothing is written.
  void zero_grad();
  /// Writes 0 to the gradient of every parameter that backward has not reached, so that all of
  /// gradients() may be read.
  void complete_gradients();

  /// Whether batch norm and dropout behave as in training.
  bool training() const { return training_; }
  void set_training(bool training) { training_ = training; }
  /// Where dropout stands.
  RngState& rng() { return rng_; }

 private:
  static constexpr uint64_t dropout_stream = uint64_t{1} << 63;
  void claim(const std::string& name);

  Device device_;
  DType dtype_;
  uint64_t seed_;
  RngState rng_;
  bool training_ = true;
  std::vector<Parameter> parameters_;
  std::vector<NamedTensor> buffers_;
  std::unordered_set<std::string> names_;
  Tensor values_, gradients_;
  int64_t decayed_elements_ = 0;
};

/// A place in the tree of names: `scope / "layer1" / "0"` names "layer1.0.…".
class Scope {
 public:
  Scope(ParameterSet& set, std::string prefix = "") : set_(&set), prefix_(std::move(prefix)) {}

  Scope operator/(std::string_view name) const { return {*set_, join(name)}; }
  Scope operator/(int64_t index) const { return *this / std::to_string(index); }
  Tensor parameter(std::string_view name, const Shape& shape, const Init& init,
                   const ParameterOptions& options = {}) const {
    return set_->add(join(name), shape, init, options);
  }
  Tensor buffer(std::string_view name, const Shape& shape, double value) const {
    return set_->add_buffer(join(name), shape, value);
  }
  ParameterSet& set() const { return *set_; }

 private:
  std::string join(std::string_view name) const {
    return prefix_.empty() ? std::string(name) : prefix_ + "." + std::string(name);
  }

  ParameterSet* set_;
  std::string prefix_;
};

}  // namespace crucible
