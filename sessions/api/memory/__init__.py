"""REST endpoints for working memory: current contents, history, settings and shared facts."""
