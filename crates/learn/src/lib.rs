//! Networks, optimisers and training methods for data whose labels are wrong.
